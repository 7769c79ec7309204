"""How TorchServe hands over a request, in every way that a client can send one."""

from __future__ import annotations

import pytest

from marvec import rows
from marvec.errors import RequestError, UnsupportedMediaTypeError

JSON = bytearray(b'{"instances": ["a"]}')


@pytest.mark.parametrize("content_type", ["application/json", "APPLICATION/JSON; charset=utf-8", "text/plain", None])
def test_the_body_is_found_whatever_its_content_type(content_type: str | None) -> None:
    headers = {"Content-Type": content_type, "url_path": "v1/embeddings"} if content_type else {}
    row = rows.read({"body": JSON}, headers)
    assert (row.body, row.query, row.path) == (JSON, {}, "v1/embeddings" if content_type else "")


@pytest.mark.parametrize("field", ["data", "body"])
def test_a_multipart_field_is_the_body_and_the_others_are_parameters(field: str) -> None:
    row = rows.read({field: JSON, "normalize": b"false"}, {"Content-Type": "multipart/form-data; boundary=x"})
    assert (row.body, row.query) == (JSON, {"normalize": "false"})


def test_the_models_name_in_the_query_is_not_a_parameter() -> None:
    assert rows.read({"model_name": "m", "body": JSON, "promptName": "q"}, {}).query == {"promptName": "q"}


def test_a_form_encoded_body_is_refused_because_it_cannot_be_known() -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    with pytest.raises(UnsupportedMediaTypeError, match="add the header Content-Type: application/json") as caught:
        rows.read({'{"instances": ["C  "]}': bytearray()}, headers)
    assert caught.value.status == 415


@pytest.mark.parametrize(
    ("fields", "found"), [({}, "neither"), ({"body": b"", "data": b""}, "body and data"), ({"file": b""}, "neither")]
)
def test_a_form_needs_exactly_one_body(fields: dict[str, object], found: str) -> None:
    with pytest.raises(RequestError) as caught:
        rows.read(fields, {"Content-Type": "multipart/form-data"})
    assert str(caught.value) == f"send the JSON as the field body or data of the form; this one has {found}"


def test_an_explanation_is_refused_alone() -> None:
    with pytest.raises(RequestError, match="explanations are not offered; send predictions to /predictions/NAME"):
        rows.read({"body": JSON}, {"explain": "True"})


def test_a_query_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(RequestError, match="query parameters: 'promptName' is not UTF-8"):
        rows.read({"body": JSON, "promptName": b"\xff"}, {})


def test_only_a_call_without_fields_is_a_describe_call() -> None:
    assert rows.is_describe({"describe": "True", "Accept": "*/*"})
    assert not rows.is_describe({"describe": "True", "body": {"content-type": "application/json"}})
    assert not rows.is_describe({"Accept": "*/*"})
