"""Vectors -> the bytes of a response. Floats are float32 in shortest form, or base64."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import orjson

from marvec.errors import MarvecError
from marvec.request import EmbeddingRequest
from marvec.tokens import Tokens

_BYTES_PER_FLOAT = 14  # "-0.012345678," and a little
_BYTES_PER_FLOAT_BASE64 = 16 / 3  # four bytes become 16 / 3 characters
_BYTES_PER_PREDICTION = 100

Vectors = npt.NDArray[np.float32]


def serialize(request: EmbeddingRequest, tokens: Sequence[Tokens], vectors: Vectors) -> bytes:
    """Write the answer in the shape that the request asked for.

    Args:
        request: What was asked.
        tokens: The tokens of each input, for the counts.
        vectors: [inputs, dimension] float32, contiguous and finite.
    """
    base64_asked = request.parameters.encoding_format == "base64"
    embeddings: Sequence[object] = [_base64(row) for row in vectors] if base64_asked else list(vectors)
    if request.openai_model is not None:
        return _dumps(_openai(request.openai_model, tokens, embeddings))
    predictions = [
        _detailed(item, embedding) if asked.detailed else embedding
        for asked, item, embedding in zip(request.inputs, tokens, embeddings)
    ]
    return _dumps({"predictions": predictions})


def size_bytes(request: EmbeddingRequest) -> int:
    """The most that the answer to a request can take."""
    base64_asked = request.parameters.encoding_format == "base64"
    per_number = _BYTES_PER_FLOAT_BASE64 if base64_asked else _BYTES_PER_FLOAT
    return int(len(request.inputs) * (request.parameters.dimension * per_number + _BYTES_PER_PREDICTION))


def serialize_error(error: MarvecError) -> bytes:
    """Write the body of an answer that is not a 200."""
    return _dumps({"error": error.public_message})


def _detailed(tokens: Tokens, embedding: object) -> dict[str, object]:
    statistics = {"token_count": len(tokens.ids), "truncated": tokens.truncated}
    return {"embeddings": {"values": embedding, "statistics": statistics}}


def _openai(model: str, tokens: Sequence[Tokens], embeddings: Sequence[object]) -> dict[str, object]:
    total = sum(len(item.ids) for item in tokens)
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": i, "embedding": item} for i, item in enumerate(embeddings)],
        "model": model,
        "usage": {"prompt_tokens": total, "total_tokens": total},
    }


def _base64(row: Vectors) -> str:
    return base64.b64encode(row.astype("<f4").tobytes()).decode("ascii")


def _dumps(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
