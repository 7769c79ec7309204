"""A folder for unfinished work beside the archive, gone when the work ends, however it ends.

It is hidden (TorchServe takes every other folder of a model store for a model) and on the archive's own file system,
so that the finished file is renamed into place. A killed process cannot clean up: the next one does, and knows by a
lock, which the kernel drops with its owner, that nobody works there any more.
"""

from __future__ import annotations

import fcntl
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from archiver.errors import PackError

_SUFFIX = ".marvec-pack"
_LOCK = "lock"
_UNLOCKED = "lock.new"
_UNLOCKED_FOR_S = 60.0  # a folder without a lock may be one that another process is just making
_MARGIN_BYTES = 64_000_000


@contextmanager
def workspace(output: Path, name: str) -> Iterator[Path]:
    """Make a private folder in `output`, remove it at the end; SIGTERM ends the block like Ctrl-C does.

    Its path is absolute, since the archive is proved in a process of another working directory.
    """
    output.mkdir(parents=True, exist_ok=True)
    _sweep(output)
    with _ending_on_sigterm():
        folder = Path(tempfile.mkdtemp(prefix=f".{name}-", suffix=_SUFFIX, dir=output.resolve()))
        try:
            with (folder / _UNLOCKED).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                # Under its own name only when it is held, so that another pack's sweep never finds it free.
                (folder / _UNLOCKED).rename(folder / _LOCK)
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def require_space(output: Path, weights_bytes: int, archives: int = 1) -> None:
    """Refuse early what would fail after minutes.

    At its fullest the disk holds the weights once more than there are archives: staged, or unpacked to be proved.

    Raises:
        PackError: When less than that is free.
    """
    needed = (1 + archives) * weights_bytes + _MARGIN_BYTES
    free = shutil.disk_usage(output).free
    if free < needed:
        raise PackError(
            f"{output}: {free / 1e6:,.0f} MB free, packing needs {needed / 1e6:,.0f} MB (the weights "
            f"{'twice' if archives == 1 else 'three times'}); make room or name another place with --model-store"
        )


def _sweep(output: Path) -> None:
    """Remove what killed processes left."""
    for folder in output.glob(f".*{_SUFFIX}"):
        lock = folder / _LOCK
        try:
            if not lock.exists():
                if time.time() - folder.stat().st_mtime > _UNLOCKED_FOR_S:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            with lock.open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its owner lives, or removed it meanwhile
            continue


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
