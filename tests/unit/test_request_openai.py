"""OpenAI's shape of a request: forms, nulls, refusals, and token ids."""

from __future__ import annotations

import pytest

from marvec.embedding_parameters import EmbeddingParameters
from marvec.errors import MarvecError
from marvec.instances import Input
from marvec.settings import EmbeddingSettings, LimitSettings
from tests.unit.test_request import PLAIN, SETTINGS, parse


@pytest.mark.parametrize("path", ["v1/embeddings", "/v1/embeddings/"])
def test_openai_shape(path: str) -> None:
    body = {"input": ["a", "b"], "model": "gpt", "encoding_format": "base64", "dimensions": 2, "user": "u"}
    parsed = parse(body, path)
    assert parsed.inputs == [Input("input[0]", "a"), Input("input[1]", "b")]
    assert parsed.parameters == EmbeddingParameters(2, True, True, "", False, "base64")
    assert parsed.openai_model == "gpt"


def test_openai_single_text_and_nulls() -> None:
    parsed = parse({"input": "a", "model": None, "dimensions": None, "encoding_format": None}, "v1/embeddings")
    assert (parsed.inputs, parsed.parameters, parsed.openai_model) == ([Input("input", "a")], PLAIN, "org/m")


@pytest.mark.parametrize(("sent", "ids"), [([1, 2], [[1, 2]]), ([[1], [2.0, 3]], [[1], [2, 3]])])
def test_openai_token_ids_where_the_archive_allows_them(sent: object, ids: list[list[int]]) -> None:
    settings = EmbeddingSettings(SETTINGS.model, limits=LimitSettings(openai_token_ids=True))
    assert [item.ids for item in parse({"input": sent}, "v1/embeddings", settings).inputs] == ids


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"instances": ["a"]}, 400, "the body: unknown key 'instances'; known keys: input, model, encoding_format, "),
        ({"model": "m"}, 400, 'the body has no input: send {"input": ["a text"]}'),
        ({"input": []}, 400, "input: expected at least one, got an empty list"),
        ({"input": 5}, 400, "input: expected a list, got a number"),
        ({"input": ["a", None]}, 400, "input[1]: expected a string, got null"),
        ({"input": ["a"] * 4}, 413, "input: 4 given, the limit is 3; send them in several requests"),
        ({"input": [1, 2]}, 400, "input[0]: token ids are not accepted, since clients send those of another model's"),
        ({"input": [[1], [2]]}, 400, "input[0]: token ids are not accepted"),
        ({"input": "a", "model": 5}, 400, "model: expected a string, got a number"),
        ({"input": "a", "encoding_format": "hex"}, 400, "encoding_format: expected one of float, base64"),
    ],
)
def test_openai_refusals(body: object, status: int, message: str) -> None:
    with pytest.raises(MarvecError) as caught:
        parse(body, "v1/embeddings")
    assert caught.value.status == status
    assert str(caught.value).startswith(message)


def test_openai_token_ids_name_the_mend() -> None:
    with pytest.raises(MarvecError, match="check_embedding_ctx_length=False"):
        parse({"input": [[57668, 53901]], "model": "x", "encoding_format": "base64"}, "v1/embeddings")
