"""Instances from a file: lines of text, JSON lines, or a request as gcloud and curl take it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from vertex.errors import VertexError

FORMATS = ("text", "jsonl", "json")


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


def read(file: str, form: str | None) -> Request:
    """Return what a file asks.

    Args:
        file: A path, or `-` for stdin.
        form: One of FORMATS; None for what the suffix says: .json, .jsonl, and text for all else.

    Raises:
        VertexError: It cannot be read, holds nothing, or not what its form says; the message names the line.
    """
    form = form or {".json": "json", ".jsonl": "jsonl"}.get(Path(file).suffix, "text")
    if form not in FORMATS:
        raise VertexError(f"--format: expected one of {', '.join(FORMATS)}, got {form!r}")
    name = "stdin" if file == "-" else file
    try:
        content = read_bytes(file).decode()
    except UnicodeDecodeError as err:
        raise VertexError(f"{name} is no UTF-8 (at byte {err.start})") from err
    request = _request(content, name) if form == "json" else Request(_lines(content, form, name))
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
        value: object = json.loads(text)
    except ValueError as err:
        raise VertexError(f"--parameters is no JSON ({err})") from err
    if not isinstance(value, dict):
        raise VertexError('--parameters: expected a JSON object, such as {"outputDimensionality": 256}')
    return value


def _lines(content: str, form: str, name: str) -> list[object]:
    # Not splitlines: a text may hold the odd separators that it takes for line ends.
    lines = content.removesuffix("\n").split("\n") if content else []
    if form == "text":
        return [line.removesuffix("\r") for line in lines]
    instances: list[object] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            instances.append(json.loads(line))
        except ValueError as err:
            raise VertexError(f"{name}, line {number} is no JSON ({err})") from err
    return instances


def _request(content: str, name: str) -> Request:
    try:
        value: object = json.loads(content)
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
