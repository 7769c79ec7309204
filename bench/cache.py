"""Where the benchmark keeps what takes long to make: beside the demo models, outside any clone."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path


def cache_folder() -> Path:
    """`marvec/bench` in $XDG_CACHE_HOME, else in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "marvec" / "bench"


def digest(*parts: bytes | str) -> str:
    """A short name for some content."""
    joined = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        joined.update(len(data).to_bytes(8, "little") + data)
    return joined.hexdigest()[:16]


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Make a folder unless it is there, complete, from an earlier time.

    It is made in its own place, since a venv cannot be moved; a lock keeps a second benchmark waiting.

    Args:
        folder: Its name should hold a digest of all that it depends on.
        make: Fills the folder, which it finds empty.

    Returns:
        The folder.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    complete = folder.parent / f"{folder.name}.complete"
    with open(folder.parent / f"{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists() or not folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            complete.touch()
    return folder
