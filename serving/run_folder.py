"""A private folder for one boot: configuration, unpacked models, sockets, temporary files. Gone with the boot.

Nothing is written anywhere else, so a read-only home and root file system will do where TMPDIR can be written. There is
no pid file: a lock, which ends with its process, tells a live folder from one that a killed boot left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from serving.errors import SettingsError

PREFIX = "marvec-"
LOCK = "lock"
UNLOCKED = "lock.new"
# sun_path holds 108 bytes, the closing zero included; TorchServe appends this to the folder.
LONGEST_SOCKET_PATH = 107
SOCKET_NAME = "/.ts.sock.65535"


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """Makes the folder, and removes it at the end along with those of boots that were killed.

    Yields:
        The folder, empty but for its lock.

    Raises:
        SettingsError: No temporary folder can be written, or its path is too long for a socket.
    """
    try:
        parent = Path(tempfile.gettempdir()).resolve()
        _sweep(parent)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    except OSError as err:
        raise SettingsError(f"no temporary folder can be written ({err}): set TMPDIR to one that can") from err
    with open(folder / UNLOCKED, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Under its own name only when it is held, so that another boot's sweep never finds it free.
        os.rename(folder / UNLOCKED, folder / LOCK)
        try:
            if len(os.fsencode(folder)) + len(SOCKET_NAME) > LONGEST_SOCKET_PATH:
                raise SettingsError(
                    f"TMPDIR={parent} is too long for the workers' sockets: set TMPDIR to a shorter path"
                )
            if "," in str(folder):  # TorchServe's list of models is split there
                raise SettingsError(f"TMPDIR={parent} has a comma in it: set TMPDIR to a path without one")
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Removes what boots that were killed with -9 left: their folders are unlocked."""
    for lock in parent.glob(f"{PREFIX}*/{LOCK}"):
        with contextlib.suppress(OSError), open(lock, "r+") as held:
            if os.fstat(held.fileno()).st_uid != os.getuid():
                continue
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
