"""The filters, orders and pages of lists."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proto import Message as SdkMessage

from tests.cloud.standin.errors import invalid

_TERM = re.compile(r"(labels\.[\w-]+|[a-zA-Z_]+)\s*(!=|=|:)\s*(\"[^\"]*\"|'[^']*'|[^\s\"']+)")
_FIELDS = {"displayName": "display_name", "createTime": "create_time", "updateTime": "update_time"}


def chosen(found: Sequence[SdkMessage], request: SdkMessage, ids: Sequence[str]) -> tuple[list[SdkMessage], str]:
    """Return the page of a list that a request asks for, and the next page's token.

    Args:
        found: Messages with `name`, `display_name`, `labels` and times.
        request: Its filter, order_by, page_size and page_token are read, as far as it has them.
        ids: The filter's own words for the id, such as `model`.

    Raises:
        ApiError: The filter or the order is not one that is documented.
    """
    for term in _terms(request.filter):
        found = [one for one in found if _matches(one, term, ids)]
    for field in reversed([part.strip() for part in getattr(request, "order_by", "").split(",") if part.strip()]):
        name, _, direction = field.partition(" ")
        name = _FIELDS.get(name, name)
        if name not in _FIELDS.values() or direction.strip() not in ("", "asc", "desc"):
            raise invalid(f"Invalid order_by {field!r}")
        found = sorted(found, key=lambda one: getattr(one, name), reverse=direction.strip() == "desc")
    start = int(request.page_token or 0)
    end = start + (request.page_size or 100)
    return list(found[start:end]), str(end) if end < len(found) else ""


def _terms(text: str) -> list[tuple[str, str, str]]:
    terms = []
    for part in re.split(r"\s+AND\s+", text.strip()) if text.strip() else []:
        found = _TERM.fullmatch(part.strip())
        if not found:
            raise invalid(f'Invalid filter {text!r}: the stand-in knows terms such as display_name="x", joined by AND')
        terms.append((found[1], found[2], found[3].strip("\"'")))
    return terms


def _matches(one: SdkMessage, term: tuple[str, str, str], ids: Sequence[str]) -> bool:
    field, sign, wanted = term
    if field.startswith("labels."):
        key = field.removeprefix("labels.")
        if sign == ":":
            return bool(key in one.labels) and wanted == "*"
        return bool(one.labels.get(key) == wanted) == (sign == "=")
    if sign == ":":
        raise invalid(f"Invalid filter: {field} takes = and != alone")
    if field in ids:
        return bool(one.name.split("@")[0].rsplit("/", 1)[-1] == wanted) == (sign == "=")
    if _FIELDS.get(field, field) == "display_name":
        return bool(one.display_name == wanted) == (sign == "=")
    raise invalid(f"Invalid filter: unknown field {field!r}")
