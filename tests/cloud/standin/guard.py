"""Ends the containers' process groups when the stand-in is gone, however it went: a process of its own, fed by a pipe.

The parent writes `+GROUP` and `-GROUP` lines; the end of the pipe is its end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from threading import Lock

PAUSE_S = 1.0


class Guard:
    """The parent's side."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-S", __file__], stdin=subprocess.PIPE, text=True, start_new_session=True
        )
        self._lock = Lock()

    def watch(self, group: int) -> None:
        """End a group when this process is gone."""
        self._write(f"+{group}\n")

    def forget(self, group: int) -> None:
        """A group has ended."""
        self._write(f"-{group}\n")

    def close(self) -> None:
        """End what is still watched, and the guard."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.wait(30)

    def _write(self, line: str) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.write(line)
                self._process.stdin.flush()


def main() -> None:
    """Watch until the pipe ends, then end what is left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    # The launcher's second SIGTERM ends it without a drain; SIGKILL would leave its Java behind.
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        for group in list(groups):
            try:
                os.killpg(group, number)
            except (ProcessLookupError, PermissionError):
                groups.discard(group)
        if groups:
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
