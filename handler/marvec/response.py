"""Values -> the bytes of a response."""

from __future__ import annotations

import orjson

from marvec.errors import MarvecError


def dumps(value: object) -> bytes:
    """Write JSON; numpy's float32 in the shortest form that reads back as the same."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def serialize_error(error: MarvecError) -> bytes:
    """Write the body of an answer that is not a 200."""
    return dumps({"error": error.public_message})
