"""The JSON files of a model directory, read with errors that name the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from marvec.errors import ModelDirError


def read_json(file: Path) -> object:
    """Read a file.

    Raises:
        ModelDirError: When it is missing or not JSON.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as err:
        raise ModelDirError(f"{file}: cannot be read as JSON: {err}") from err


def read_object(file: Path, why: str) -> dict[str, object]:
    """Read a file that holds an object.

    Args:
        file: What to read.
        why: Why it should be there, for the error.

    Raises:
        ModelDirError: When it is missing or holds anything else.
    """
    if not file.is_file():
        raise ModelDirError(f"{file}: no such file; {why}")
    content = read_json(file)
    if not isinstance(content, dict):
        raise ModelDirError(f"{file}: expected a JSON object")
    return content


def read_optional(file: Path) -> dict[str, object]:
    """Read a file that holds an object, or give an empty one where there is no such file."""
    return read_object(file, "") if file.is_file() else {}


def text(file: Path, config: Mapping[str, object], key: str) -> str:
    """A key's string.

    Raises:
        ModelDirError: When there is none.
    """
    value = config.get(key)
    if not isinstance(value, str):
        raise ModelDirError(f"{file}: {key} is missing: not a transformers model's configuration")
    return value


def count(file: Path, config: Mapping[str, object], key: str) -> int:
    """A key's positive whole number.

    Raises:
        ModelDirError: When it is anything else.
    """
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelDirError(f"{file}: {key} should be a positive whole number, is {value!r}")
    return value


def as_list(value: object) -> list[object]:
    """The list itself, or an empty one for anything else."""
    return list(value) if isinstance(value, list) else []
