"""What a call is refused with, on either wire."""

from __future__ import annotations

from enum import Enum
from http import HTTPStatus
from typing import Any


class Code(Enum):
    """google.rpc.Code's number, and the HTTP status that Google maps it to."""

    CANCELLED = (1, 499)
    INVALID_ARGUMENT = (3, 400)
    DEADLINE_EXCEEDED = (4, 504)
    NOT_FOUND = (5, 404)
    ALREADY_EXISTS = (6, 409)
    PERMISSION_DENIED = (7, 403)
    RESOURCE_EXHAUSTED = (8, 429)
    FAILED_PRECONDITION = (9, 400)
    ABORTED = (10, 409)
    UNIMPLEMENTED = (12, 501)
    INTERNAL = (13, 500)
    UNAVAILABLE = (14, 503)
    UNAUTHENTICATED = (16, 401)

    @property
    def number(self) -> int:
        """The number of google.rpc.Code."""
        return self.value[0]

    @property
    def http(self) -> int:
        """The HTTP status."""
        return self.value[1]


class ApiError(Exception):
    """A call that is refused.

    Attributes:
        code: Why.
        message: What the caller reads.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def body(self) -> dict[str, Any]:
        """Return the JSON that REST answers."""
        return {"error": {"code": self.code.http, "message": self.message, "status": self.code.name}}


class Cut(Exception):
    """The connection is cut instead of an answer."""


def invalid(message: str) -> ApiError:
    """Return a refusal of what a request holds."""
    return ApiError(Code.INVALID_ARGUMENT, message)


def precondition(message: str) -> ApiError:
    """Return a refusal of what the state of things does not allow."""
    return ApiError(Code.FAILED_PRECONDITION, message)


def not_found(name: str) -> ApiError:
    """Return a refusal for a name that nothing has."""
    return ApiError(Code.NOT_FOUND, f"{name} is not found.")


def of_http(status: int, message: str) -> ApiError:
    """Return the refusal that stands for a container's HTTP status."""
    by_status = {
        400: Code.INVALID_ARGUMENT,
        401: Code.UNAUTHENTICATED,
        403: Code.PERMISSION_DENIED,
        404: Code.NOT_FOUND,
        429: Code.RESOURCE_EXHAUSTED,
        503: Code.UNAVAILABLE,
        504: Code.DEADLINE_EXCEEDED,
    }
    usual = Code.FAILED_PRECONDITION if status < HTTPStatus.INTERNAL_SERVER_ERROR else Code.INTERNAL
    return ApiError(by_status.get(status, usual), message)
