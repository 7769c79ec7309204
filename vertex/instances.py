"""Instances from a file: lines of text, JSON lines, or a request as gcloud and curl take it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from vertex.errors import VertexError


class Format(str, Enum):
    """What a file holds: a text a line, an instance a line as JSON, or a whole request."""

    TEXT = "text"
    JSONL = "jsonl"
    JSON = "json"


_BY_SUFFIX = {".json": Format.JSON, ".jsonl": Format.JSONL}


@dataclass(frozen=True)
class Request:
    """What is asked.

    Attributes:
        instances: At least one.
        parameters: None for none.
    """

    instances: list[object]
    parameters: dict[str, object] | None = None


def read_bytes(file: str) -> bytes:
    """Return a file's content.

    Args:
        file: A path, or `-` for stdin.

    Raises:
        VertexError: It cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as err:
        raise VertexError(f"{file}: {err.strerror or err}") from err


def read(file: str, form: Format | None) -> Request:
    """Return what a file asks.

    Args:
        file: A path, or `-` for stdin.
        form: What it holds; None for what the suffix says: .json, .jsonl, and text for all else.

    Raises:
        VertexError: It cannot be read, holds nothing, or not what its form says; the message names the line.
    """
    form = form or _BY_SUFFIX.get(Path(file).suffix, Format.TEXT)
    name = "stdin" if file == "-" else file
    try:
        content = read_bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError as err:
        raise VertexError(f"{name} is no UTF-8 (at byte {err.start})") from err
    request = _request(content, name) if form is Format.JSON else Request(_lines(content, form, name))
    if not request.instances:
        raise VertexError(f"{name} holds no instance")
    return request


def parameters(text: str | None) -> dict[str, object] | None:
    """Return parameters from the command line.

    Args:
        text: A JSON object; None for none.

    Raises:
        VertexError: It is something else.
    """
    if text is None:
        return None
    try:
        value: object = _json(text)
    except ValueError as err:
        raise VertexError(f"--parameters is no JSON ({err})") from err
    if not isinstance(value, dict):
        raise VertexError('--parameters: expected a JSON object, such as {"autoTruncate": false}')
    return value


def _json(text: str) -> object:
    """What a text holds, if JSON can be made of it again.

    Raises:
        ValueError: It is no JSON, or holds what only Python takes: NaN, half of a surrogate pair, boundless depth.
    """
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError as err:
        raise ValueError("nested too deeply") from err
    except UnicodeEncodeError as err:
        raise ValueError("half of a surrogate pair, which is no character") from err
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")


def _lines(content: str, form: Format, name: str) -> list[object]:
    # Not splitlines: a text may hold the odd separators that it takes for line ends.
    lines = content.removesuffix("\n").split("\n") if content else []
    if form is Format.TEXT:
        return [line.removesuffix("\r") for line in lines]
    instances: list[object] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            instances.append(_json(line))
        except ValueError as err:
            raise VertexError(f"{name}, line {number} is no JSON ({err})") from err
    return instances


def _request(content: str, name: str) -> Request:
    try:
        value: object = _json(content)
    except ValueError as err:
        raise VertexError(f"{name} is no JSON ({err})") from err
    if isinstance(value, list):
        return Request(value)
    if not isinstance(value, dict) or not isinstance(value.get("instances"), list) or value.keys() - _KEYS:
        raise VertexError(f'{name}: expected {{"instances": […], "parameters": {{…}}}}, or a list of instances')
    given: object = value.get("parameters")
    if given is not None and not isinstance(given, dict):
        raise VertexError(f"{name}: expected parameters to be an object")
    return Request(value["instances"], given)


_KEYS = {"instances", "parameters"}
