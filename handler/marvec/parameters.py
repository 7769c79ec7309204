"""Parameters that come in a URL or in form fields, as strings."""

from __future__ import annotations

import re
from collections.abc import Mapping

from marvec import json_values

_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}(\.0*)?")
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}


def of_query(query: Mapping[str, str], names: tuple[str, ...], kinds: Mapping[str, str]) -> dict[str, object]:
    """Read strings as their parameter's type; what does not fit stays one, and is refused where values are checked.

    Args:
        query: Name -> text.
        names: The known parameters.
        kinds: Name -> "whole", "number" or "boolean"; the others are texts.

    Raises:
        RequestError: For an unknown parameter.
    """
    typed = {name: _typed(text, kinds.get(name, "text")) for name, text in query.items()}
    return json_values.members(typed, "query parameters", names)


def _typed(text: str, kind: str) -> object:
    if kind == "boolean":
        return _BOOLEANS.get(text, text)
    if kind == "whole" and _WHOLE_NUMBER.fullmatch(text):
        return float(text)
    if kind == "number" and _NUMBER.fullmatch(text):
        return float(text)
    return text
