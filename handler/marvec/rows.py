"""How TorchServe hands a request to a handler: a dict of fields, and a dict of headers.

sent as                               row                               headers
JSON, text, or no content type        {"body": bytes, dict or str}      "body": {"content-type": …}
multipart                             one entry a field, bytes          one entry a field
application/x-www-form-urlencoded     the body taken apart at & and =   one entry a field
with a query string (/invocations)    one more entry a parameter        one more entry a parameter
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marvec.errors import RequestError, UnsupportedMediaTypeError

_BODY_FIELDS = ("body", "data")
_ROUTING_FIELDS = ("model_name",)  # /invocations?model_name=NAME: read by TorchServe, not for us


@dataclass(frozen=True)
class Row:
    """One request as TorchServe delivered it.

    Attributes:
        body: JSON, decoded or not.
        query: Parameters from the URL or from form fields.
        path: What the URL had after the model's version.
    """

    body: object
    query: Mapping[str, str]
    path: str


def read(fields: Mapping[str, object], headers: Mapping[str, object]) -> Row:
    """Find the body among the fields.

    Args:
        fields: What TorchServe passes to `handle` for one request.
        headers: What `context.get_all_request_header` gives for it.

    Raises:
        UnsupportedMediaTypeError: For a form-encoded body: the form decoder has turned + into a space and %41 into A,
            so the text that was meant can no longer be known.
        RequestError: For an explanation, or a multipart body without a field of the right name.
    """
    # TorchServe's own headers overwrite a client's of the same name, but not one in other letters, such as Explain.
    if headers.get("explain") == "True":
        raise RequestError("explanations are not offered; send predictions to /predictions/NAME")
    named = {name.lower(): value for name, value in headers.items()}
    if str(named.get("content-type", "")).lower().startswith("application/x-www-form-urlencoded"):
        raise UnsupportedMediaTypeError(
            "the body was sent as a form: add the header Content-Type: application/json (curl: -H 'Content-Type: "
            "application/json')"
        )
    present = [name for name in _BODY_FIELDS if name in fields]
    if len(present) != 1:
        found = " and ".join(present) if present else "neither"
        raise RequestError(f"send the JSON as the field body or data of the form; this one has {found}")
    skipped = (*_ROUTING_FIELDS, present[0])
    query = {name: _text(name, value) for name, value in fields.items() if name not in skipped}
    return Row(fields[present[0]], query, str(headers.get("url_path", "")))


def is_describe(headers: Mapping[str, object]) -> bool:
    """Whether this is TorchServe's describe call: no field, and a header (which any client could send)."""
    return headers.get("describe") == "True" and not any(isinstance(value, dict) for value in headers.values())


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return bytes(value).decode("utf-8") if isinstance(value, (bytes, bytearray)) else str(value)
    except UnicodeDecodeError as err:
        raise RequestError(f"query parameters: {name[:40]!a} is not UTF-8") from err
