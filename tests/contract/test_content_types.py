"""How a body is sent, by curl as users do: the same JSON gives the same answer, or a refusal says what to change."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.contract.endpoint import Answer, Endpoint, refusal

BODY = {"instances": ["+ %41 & = 日本 \\ \"'"], "parameters": {"outputDimensionality": 2}}
TEXT = json.dumps(BODY, ensure_ascii=False)
AS_FORM = refusal(
    415,
    "the body was sent as a form: add the header Content-Type: application/json (curl: -H 'Content-Type: "
    "application/json')",
)
EMPTY = refusal(400, 'the body is empty: send a JSON object such as {"instances": ["a text"]}')
NO_FIELD = "send the JSON as the field body or data of the form; this one has"


@pytest.fixture(scope="module")
def wanted(tiny: Endpoint) -> Answer:
    """Return the answer that JSON gets as application/json."""
    answer = tiny.post(BODY)
    assert answer.vectors().shape == (1, 2)
    return answer


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "request.json"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "APPLICATION/JSON",
        "Application/Json; charset=utf-8",
        "application/vnd.api+json",
        "text/plain",
        "text/plain; charset=utf-8",
        "application/octet-stream",
        "nonsense",
        "",
    ],
)
def test_content_types(tiny: Endpoint, wanted: Answer, file: Path, content_type: str) -> None:
    """B30; the empty one is no header at all."""
    assert tiny.curl("--header", f"Content-Type: {content_type}", "--data-binary", f"@{file}") == wanted


def test_header_names_and_a_byte_order_mark(tiny: Endpoint, wanted: Answer) -> None:
    body = b"\xef\xbb\xbf" + TEXT.encode()
    assert tiny.curl("--header", "content-TYPE: application/JSON", "--data-binary", "@-", stdin=body) == wanted


def test_escaped_and_raw_characters_are_the_same(tiny: Endpoint, wanted: Answer) -> None:
    assert tiny.send(json.dumps(BODY, ensure_ascii=True).encode()) == wanted
    assert tiny.send(json.dumps(BODY, ensure_ascii=False, indent=2).encode()) == wanted


def test_curl_upload(tiny: Endpoint, wanted: Answer, file: Path) -> None:
    """B30: curl -T names no content type, and says PUT; from a pipe it sends chunks of unknown number."""
    assert tiny.curl("--upload-file", str(file)) == wanted
    assert tiny.curl("--upload-file", "-", stdin=TEXT.encode()) == wanted
    assert tiny.curl("--upload-file", str(file), "--header", "Content-Type: application/octet-stream") == wanted


def test_curl_json_in_chunks(tiny: Endpoint, wanted: Answer, file: Path) -> None:
    chunked = ("--header", "Transfer-Encoding: chunked", "--header", "Content-Type: application/json")
    assert tiny.curl(*chunked, "--data-binary", f"@{file}") == wanted


@pytest.mark.parametrize("body", ['{"instances": ["+ %41 = 日本"]}', '{"instances": ["a"]}', "instances=a", ""])
def test_curl_data_without_a_header(tiny: Endpoint, body: str) -> None:
    """A form decoder has been over it: + and %41 are gone for good."""
    assert tiny.curl("--data", body) == AS_FORM


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"instances": ["a & = b"]}', "java.lang.IllegalArgumentException: empty name"),
        ('{"instances": ["a=100%"]}', "Invalid hex byte at index '3' in string: '100%\"]}'"),
    ],
)
def test_curl_data_that_cannot_be_a_form(tiny: Endpoint, body: str, message: str) -> None:
    """TorchServe's decoder fails over it, and no handler sees it; the log must not quote it (test_log.py)."""
    answer = tiny.curl("--data", body)
    assert (answer.status, answer.content_type) == (500, "application/json")
    assert answer.json() == {"code": 500, "type": "ErrorDataDecoderException", "message": message}


def test_a_form_with_a_charset(tiny: Endpoint) -> None:
    header = "Content-Type: APPLICATION/x-www-form-urlencoded; charset=utf-8"
    assert tiny.curl("--header", header, "--data", "{}") == AS_FORM


@pytest.mark.parametrize("field", ["data", "body"])
def test_multipart(tiny: Endpoint, wanted: Answer, file: Path, field: str) -> None:
    assert tiny.curl("--form-string", f"{field}={TEXT}") == wanted
    assert tiny.curl("--form", f"{field}=@{file}") == wanted
    assert tiny.curl("--form", f"{field}=@{file};type=application/json") == wanted


def test_parameters_as_fields_of_a_form(tiny: Endpoint, wanted: Answer) -> None:
    """The body's own parameters win."""
    instances = json.dumps({"instances": BODY["instances"]}, ensure_ascii=False)
    assert tiny.curl("--form-string", f"data={instances}", "--form", "outputDimensionality=2") == wanted
    assert tiny.curl("--form-string", f"data={TEXT}", "--form", "outputDimensionality=7") == wanted
    assert tiny.curl("--form-string", f"data={TEXT}", "--form", "outputDimensionality=x") == wanted
    assert tiny.curl("--form-string", f"data={TEXT}", "--form", "top_k=3") == refusal(
        400,
        "query parameters: unknown key 'top_k'; known keys: outputDimensionality, autoTruncate, normalize, "
        "promptName, taskType, encodingFormat",
    )


def test_multipart_without_the_field(tiny: Endpoint) -> None:
    assert tiny.curl("--form", "file=x") == refusal(400, f"{NO_FIELD} neither")
    assert tiny.curl("--form", "data=x", "--form", "body=x") == refusal(400, f"{NO_FIELD} body and data")
    boundary = "Content-Type: multipart/form-data; boundary=missing"
    assert tiny.curl("--header", boundary, "--data-binary", TEXT) == refusal(400, f"{NO_FIELD} neither")


def test_empty_bodies(tiny: Endpoint) -> None:
    assert tiny.curl() == EMPTY
    assert tiny.curl("--request", "POST") == EMPTY
    assert tiny.curl("--header", "Content-Type: application/json", "--data", "") == EMPTY
    assert tiny.curl("--form", "data=") == EMPTY


def test_a_get_request_with_a_body(tiny: Endpoint, wanted: Answer, file: Path) -> None:
    arguments = ("--request", "GET", "--header", "Content-Type: application/json", "--data-binary", f"@{file}")
    assert tiny.curl(*arguments) == wanted


def test_a_compressed_body_is_not_utf_8(tiny: Endpoint) -> None:
    headers = ("--header", "Content-Type: application/json", "--header", "Content-Encoding: gzip")
    answer = tiny.curl(*headers, "--data-binary", "@-", stdin=gzip.compress(TEXT.encode(), mtime=0))
    assert answer == refusal(400, "the body is not valid UTF-8: byte 1")
