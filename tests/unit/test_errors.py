"""What a caller may read of an error: request errors in full, all others not at all."""

from __future__ import annotations

import pytest

from marvec import errors


@pytest.mark.parametrize(
    ("error", "status", "public"),
    [
        (errors.RequestError("mend it"), 400, "mend it"),
        (errors.NotFoundError("not here"), 404, "not here"),
        (errors.TooLargeError("too large"), 413, "too large"),
        (errors.UnsupportedMediaTypeError("no form"), 415, "no form"),
        (errors.BusyError(), 503, "the server is busy: try again in a moment"),
        (errors.InternalError("secret"), 500, "internal error: the server's log has the cause"),
        (errors.SettingsError("secret"), 500, "internal error: the server's log has the cause"),
    ],
)
def test_status_and_public_message(error: errors.MarvecError, status: int, public: str) -> None:
    assert error.status == status
    assert error.public_message == public
