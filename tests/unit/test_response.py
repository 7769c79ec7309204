"""The bytes of an answer: shortest float32, base64, Google's and OpenAI's shapes, errors."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

import numpy as np
import pytest

from marvec import embedding_response, response
from marvec.embedding_parameters import EmbeddingParameters
from marvec.errors import InternalError, RequestError
from marvec.tokens import Tokens

VECTORS = np.array([[0.1, -1e-9], [1 / 3, 2.0]], np.float32)
TOKENS = [Tokens([1, 2], 2), Tokens([1, 2, 3], 9)]


def written(encoding_format: str = "float", detailed: bool = False) -> bytes:
    """Return the answer to two instances, of which the first may be of Google's shape."""
    return embedding_response.predictions([detailed, False], TOKENS, encoded(encoding_format))


def encoded(encoding_format: str) -> Sequence[object]:
    return embedding_response.encoded(VECTORS, EmbeddingParameters(2, True, True, "", False, encoding_format))


def test_floats_have_the_shortest_form_that_reads_back_the_same() -> None:
    body = written()
    assert body == b'{"predictions":[[0.1,-1e-9],[0.33333334,2.0]]}'
    assert np.array_equal(np.array(json.loads(body)["predictions"], np.float32), VECTORS)


def test_base64_is_little_endian_float32() -> None:
    first = json.loads(written("base64"))["predictions"][0]
    assert np.array_equal(np.frombuffer(base64.b64decode(first), "<f4"), VECTORS[0])


def test_google_detail_is_per_instance() -> None:
    assert json.loads(written(detailed=True))["predictions"] == [
        {"embeddings": {"values": [0.1, -1e-9], "statistics": {"token_count": 2, "truncated": False}}},
        [pytest.approx(1 / 3), 2.0],
    ]


def test_openai_shape_counts_the_tokens_that_were_computed() -> None:
    assert json.loads(embedding_response.openai("m", TOKENS, encoded("float"))) == {
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [0.1, -1e-9]},
            {"object": "embedding", "index": 1, "embedding": [pytest.approx(1 / 3), 2.0]},
        ],
        "model": "m",
        "usage": {"prompt_tokens": 5, "total_tokens": 5},
    }


def test_an_error_is_told_as_far_as_the_caller_may_know() -> None:
    assert response.serialize_error(RequestError('say "x"')) == b'{"error":"say \\"x\\""}'
    assert response.serialize_error(InternalError("secret")) == (
        b'{"error":"internal error: the server\'s log has the cause"}'
    )
