"""TorchServe's Java and its workers as one process group that ends as one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL_S = 0.02


class JavaProcess:
    """A running Java; its workers are in its process group, and become our children when Java dies before them.

    Args:
        command: From `java_command`.
        environment: From `java_environment`.
        folder: The working directory: TorchServe drops files such as key_file.json there.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        """Starts Java. Must run in the main thread: Linux ties the death signal to the thread that forks."""
        libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        if libc is not None:
            # Orphans come to us to be reaped, as they would if we were PID 1.
            libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        parent = os.getpid()

        def prepare() -> None:
            """In the child: die when the launcher dies, even by -9. Workers end when their socket to Java closes."""
            if libc is not None:
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                if os.getppid() != parent:
                    os._exit(1)

        self.output, write_end = os.pipe()
        try:
            # A session of its own: Ctrl-C reaches the launcher alone, which then drains.
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=write_end,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
                preexec_fn=prepare,
            )
        finally:
            os.close(write_end)
        self.pid = process.pid
        self._process = process
        self._status: int | None = None

    def poll(self) -> int | None:
        """Reaps whatever child has ended, Java or an orphan.

        Returns:
            Java's exit status as a shell would give it (128 + signal), None while it runs.
        """
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid == self.pid:
                code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
                self._status = code
                # Popen would otherwise wait for a child that is gone.
                self._process.returncode = code
        return self._status

    def kill(self) -> None:
        """Ends Java and every worker at once; safe in a signal handler."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self, grace_s: float) -> None:
        """Asks Java to end, then kills whatever is left of the group, and waits until all of it is gone.

        Args:
            grace_s: How long Java may take by itself.
        """
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
        self._wait(grace_s, with_workers=False)
        self.kill()
        self._wait(10.0, with_workers=True)

    def _wait(self, timeout_s: float, *, with_workers: bool) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self.poll() is not None and not (with_workers and self._group_lives()):
                return
            time.sleep(POLL_S)

    def _group_lives(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
