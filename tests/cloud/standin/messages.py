"""Google's messages: between the SDK's classes, protobuf's, JSON and the clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from google.protobuf import json_format, timestamp_pb2
from google.protobuf.message import Message
from proto import Message as SdkMessage

from tests.cloud.standin.errors import invalid

# What json.loads gives.
Json: TypeAlias = Any


def plain(message: SdkMessage) -> Message:
    """Return a message of the SDK as protobuf's own."""
    inner = type(message).pb(message) if hasattr(type(message), "pb") else message
    if not isinstance(inner, Message):
        raise TypeError(f"no message: {message!r}")
    return inner


def copy(message: SdkMessage) -> SdkMessage:
    """Return a copy of a message of the SDK."""
    return type(message)(message)


def to_json(message: Message) -> dict[str, Any]:
    """Return a message as REST answers it."""
    return dict(json_format.MessageToDict(message))


def from_json(content: Mapping[str, Any], kind: type[Message]) -> Message:
    """Parse a request, and refuse what the message does not know.

    Args:
        content: JSON.
        kind: The protobuf class.

    Raises:
        ApiError: A field is unknown, or holds what it cannot.
    """
    message: Message = kind()
    try:
        json_format.ParseDict(content, message)
    except json_format.ParseError as err:
        raise invalid(f"Invalid JSON payload received. {err}") from err
    return message


def now() -> timestamp_pb2.Timestamp:
    """Return this moment."""
    moment = timestamp_pb2.Timestamp()
    moment.GetCurrentTime()
    return moment


def value_to_json(value: Message) -> Json:
    """Return a protobuf Value as JSON in which every number is a double, as a container gets it: 256 is 256.0.

    How the service itself prints whole numbers is not known; a server must take both.
    """
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return {key: value_to_json(one) for key, one in value.struct_value.fields.items()}
    if kind == "list_value":
        return [value_to_json(one) for one in value.list_value.values]
    if kind is None or kind == "null_value":
        return None
    return getattr(value, kind)
