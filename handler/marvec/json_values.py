"""JSON bytes -> values, and the checks of a value's type that every part of a request needs."""

from __future__ import annotations

import json
from collections.abc import Sequence

import orjson

from marvec.errors import RequestError

_BOM = b"\xef\xbb\xbf"
_TYPE_NAMES = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def loads(body: object) -> object:
    """Decode a request's body.

    Args:
        body: UTF-8 bytes, a string, or what a server has already decoded (returned as it is).

    Raises:
        RequestError: When it is empty, not UTF-8, or not JSON. Messages give positions, never text.
    """
    if isinstance(body, str):
        body = body.encode("utf-8", "surrogatepass")
    if not isinstance(body, (bytes, bytearray)):
        return body
    data = bytes(body)
    if data.startswith(_BOM):
        data = data[len(_BOM) :]
    if not data.strip():
        raise RequestError('the body is empty: send a JSON object such as {"instances": ["a text"]}')
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _loads_lone_surrogates(data)


def _loads_lone_surrogates(data: bytes) -> object:
    r"""Decode what orjson refuses: "\ud800" escapes without a partner are legal JSON, and clients do send them."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as err:
        raise RequestError(f"the body is not valid UTF-8: byte {err.start}") from err
    except RecursionError as err:
        raise RequestError("the body is not valid JSON: nested too deeply") from err
    except ValueError as err:
        raise RequestError(f"the body is not valid JSON: {err}") from err


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def type_name(value: object) -> str:
    """What a caller calls the type of a JSON value, with its article: "a number", "null"."""
    return "null" if value is None else _TYPE_NAMES.get(type(value), "an unknown value")


def text(value: object, where: str) -> str:
    """Require a string; a lone surrogate in it becomes U+FFFD, since no tokenizer can take it."""
    if not isinstance(value, str):
        raise RequestError(f"{where}: expected a string, got {type_name(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def boolean(value: object, where: str) -> bool:
    """Require true or false."""
    if not isinstance(value, bool):
        raise RequestError(f"{where}: expected true or false, got {type_name(value)}")
    return value


def whole(value: object, where: str) -> int:
    """Require a whole number; 256.0 is one, since the Vertex SDK sends every number as a double."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RequestError(f"{where}: expected a whole number, got {type_name(value)}")
    if isinstance(value, float) and not value.is_integer():
        raise RequestError(f"{where}: expected a whole number, got {value!r}")
    return int(value)


def number(value: object, where: str) -> float:
    """Require a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RequestError(f"{where}: expected a number, got {type_name(value)}")
    try:
        return float(value)
    except OverflowError as err:  # JSON's whole numbers have no end
        raise RequestError(f"{where}: the number is too large") from err


def one_of(value: object, where: str, choices: Sequence[str]) -> str:
    """Require one of some strings."""
    name = text(value, where)
    if name not in choices:
        raise RequestError(f"{where}: expected one of {', '.join(choices)}")
    return name


def items(value: object, where: str) -> list[object]:
    """Require a list with at least one item."""
    if not isinstance(value, list):
        raise RequestError(f"{where}: expected a list, got {type_name(value)}")
    if not value:
        raise RequestError(f"{where}: expected at least one, got an empty list")
    return value


def members(value: object, where: str, known: tuple[str, ...]) -> dict[str, object]:
    """Require an object whose keys are all known."""
    if not isinstance(value, dict):
        raise RequestError(f"{where}: expected an object, got {type_name(value)}")
    for key in value:
        if key not in known:
            raise RequestError(f"{where}: unknown key {_shown(key)}; known keys: {', '.join(known)}")
    return value


def _shown(key: object) -> str:
    """A key as an error shows it: keys are the caller's own words, so a long one is cut."""
    name = text(str(key), "key")
    return ascii(name if len(name) <= 40 else name[:40] + "...")
