"""What the file system refuses becomes one sentence."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from archiver.errors import from_os_error


@pytest.mark.parametrize(
    ("number", "file", "message"),
    [
        (
            errno.ENOSPC,
            "/store/.x/model",
            "/store: no space left on the disk; nothing was changed, the unfinished archive is removed",
        ),
        (
            errno.EROFS,
            "/store",
            "/store: Read-only file system: nothing can be written there; name another place with --model-store",
        ),
        (errno.EACCES, "/model/config.json", "/model/config.json: Permission denied"),
        (errno.EIO, None, "/store: Input/output error"),
    ],
)
def test_the_place_and_the_reason_are_named(number: int, file: str | None, message: str) -> None:
    err = OSError(number, os.strerror(number), file) if file else OSError(number, os.strerror(number))

    assert str(from_os_error(err, Path("/store"))) == message
