"""Vectors -> the bytes of a response. Floats are float32 in shortest form, or base64."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from marvec.embedding_parameters import EmbeddingParameters
from marvec.response import dumps
from marvec.tokens import Tokens

_BYTES_PER_FLOAT = 14  # "-0.012345678," and a little
_BYTES_PER_FLOAT_BASE64 = 16 / 3  # four bytes become 16 / 3 characters
_BYTES_PER_PREDICTION = 100

Vectors = npt.NDArray[np.float32]


def size_bytes(inputs: int, parameters: EmbeddingParameters) -> int:
    """The most that the vectors of so many inputs can take."""
    per_number = _BYTES_PER_FLOAT_BASE64 if parameters.encoding_format == "base64" else _BYTES_PER_FLOAT
    return int(inputs * (parameters.dimension * per_number + _BYTES_PER_PREDICTION))


def encoded(vectors: Vectors, parameters: EmbeddingParameters) -> Sequence[object]:
    """Each vector as JSON will hold it.

    Args:
        vectors: [inputs, dimension] float32, contiguous and finite.
        parameters: For the format.
    """
    return [_base64(row) for row in vectors] if parameters.encoding_format == "base64" else list(vectors)


def predictions(detailed: Sequence[bool], tokens: Sequence[Tokens], embeddings: Sequence[object]) -> bytes:
    """The answer to `instances`.

    Args:
        detailed: For each input, whether it is answered in the shape of Google's text-embeddings API.
        tokens: The tokens of each input, for the counts.
        embeddings: As `encoded` gives them.
    """
    return dumps(
        {
            "predictions": [
                _detailed(item, embedding) if asked else embedding
                for asked, item, embedding in zip(detailed, tokens, embeddings)
            ]
        }
    )


def openai(model: str, tokens: Sequence[Tokens], embeddings: Sequence[object]) -> bytes:
    """The answer in OpenAI's shape.

    Args:
        model: The name that the caller sent.
        tokens: The tokens of each input, for the counts.
        embeddings: As `encoded` gives them.
    """
    total = sum(len(item.ids) for item in tokens)
    return dumps(
        {
            "object": "list",
            "data": [{"object": "embedding", "index": i, "embedding": item} for i, item in enumerate(embeddings)],
            "model": model,
            "usage": {"prompt_tokens": total, "total_tokens": total},
        }
    )


def _detailed(tokens: Tokens, embedding: object) -> dict[str, object]:
    statistics = {"token_count": len(tokens.ids), "truncated": tokens.truncated}
    return {"embeddings": {"values": embedding, "statistics": statistics}}


def _base64(row: Vectors) -> str:
    return base64.b64encode(row.astype("<f4").tobytes()).decode("ascii")
