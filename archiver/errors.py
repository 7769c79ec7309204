"""What packing raises, and the words for what a file system refuses."""

from __future__ import annotations

import errno
from pathlib import Path

from marvec.errors import MarvecError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


class PackError(MarvecError):
    """A model cannot be packed; the message names the file or option, and the reason."""


def from_os_error(err: OSError, output: Path) -> PackError:
    """Turn what the file system refused into one sentence.

    Args:
        err: As raised while files were read or written.
        output: The folder that the archive was to be written into.
    """
    where = err.filename if isinstance(err.filename, (str, Path)) else output
    if err.errno in _FULL:
        return PackError(f"{output}: no space left on the disk; nothing was changed, the unfinished archive is removed")
    if err.errno in _REFUSED and output.resolve() in (Path(where).resolve(), *Path(where).resolve().parents):
        return PackError(
            f"{output}: {err.strerror}: nothing can be written there; name another place with --model-store"
        )
    return PackError(f"{where}: {err.strerror or err}")


def first_line(err: BaseException) -> str:
    """What an error of a library says first, or its kind where it says nothing; the rest is often a page."""
    return (str(err).strip().splitlines() or [type(err).__name__])[0]
