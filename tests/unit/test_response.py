"""The bytes of an answer: shortest float32, base64, Google's and OpenAI's shapes, errors."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
import torch

from marvec import response
from marvec.embedding_parameters import EmbeddingParameters
from marvec.embedding_request import EmbeddingRequest
from marvec.errors import InternalError, RequestError
from marvec.instances import Input
from marvec.tokens import Tokens

VECTORS = np.array([[0.1, -1e-9], [1 / 3, 2.0]], np.float32)
NUMBERS = torch.from_numpy(VECTORS)
TOKENS = [Tokens([1, 2], 2), Tokens([1, 2, 3], 9)]


def asked(encoding_format: str = "float", detailed: bool = False, openai_model: str | None = None) -> EmbeddingRequest:
    parameters = EmbeddingParameters(2, True, True, "", False, encoding_format)
    return EmbeddingRequest([Input("a", "", detailed=detailed), Input("b", "")], parameters, openai_model)


def test_floats_have_the_shortest_form_that_reads_back_the_same() -> None:
    body = asked().serialize(TOKENS, NUMBERS)
    assert body == b'{"predictions":[[0.1,-1e-9],[0.33333334,2.0]]}'
    assert np.array_equal(np.array(json.loads(body)["predictions"], np.float32), VECTORS)


def test_base64_is_little_endian_float32() -> None:
    first = json.loads(asked("base64").serialize(TOKENS, NUMBERS))["predictions"][0]
    assert np.array_equal(np.frombuffer(base64.b64decode(first), "<f4"), VECTORS[0])


def test_google_detail_is_per_instance() -> None:
    assert json.loads(asked(detailed=True).serialize(TOKENS, NUMBERS))["predictions"] == [
        {"embeddings": {"values": [0.1, -1e-9], "statistics": {"token_count": 2, "truncated": False}}},
        [pytest.approx(1 / 3), 2.0],
    ]


def test_openai_shape_counts_the_tokens_that_were_computed() -> None:
    assert json.loads(asked(openai_model="m").serialize(TOKENS, NUMBERS)) == {
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
