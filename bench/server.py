"""A server from its start to its end, with everything that it starts."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import psutil

from bench.connection import Connection, LoadError

START_TIMEOUT_S = 600.0
END_TIMEOUT_S = 20.0
POLL_S = 0.02
# What a user has set for their own server must not reach those under test.
CLEARED = ("AIP_HTTP_PORT", "PORT", "OMP_NUM_THREADS", "PYTHONPATH", "TS_CONFIG_FILE")
OFFLINE = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}


class ServerError(Exception):
    """A server ended by itself, or did not answer in time; the message holds the end of its log."""


@dataclass(frozen=True)
class Launch:
    """How a server is started.

    Attributes:
        command: The program and its arguments.
        port: Where it will listen.
        environment: Variables over those of this process.
        folder: Its working directory.
    """

    command: Sequence[str]
    port: int
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)


class Server:
    """A server, running for as long as a `with` block. It is ready when it has answered a real request.

    Args:
        launch: How to start it.
        probe: A request that it answers when it is ready.
        log: Where what it writes goes.
        cores: The cores that it may run on; None for all.

    Attributes:
        launch: As given.
        probe: As given.
        port: Where it listens.
        ready_after_s: From the start of the process to the first answer.
    """

    def __init__(self, launch: Launch, probe: bytes, log: Path, cores: Sequence[int] | None = None) -> None:
        self.launch = launch
        self.probe = probe
        self.port = launch.port
        self.ready_after_s = 0.0
        self._log = log
        self._cores = cores
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        started_s = time.perf_counter()
        inherited = {name: value for name, value in os.environ.items() if name not in CLEARED}
        pin = [] if self._cores is None else ["taskset", "--cpu-list", ",".join(str(core) for core in self._cores)]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [*pin, *self.launch.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**inherited, **OFFLINE, **self.launch.environment},
                cwd=self.launch.folder,
                start_new_session=True,  # a group of its own, which is ended as one
            )
        try:
            self._wait_ready(self._process, started_s + START_TIMEOUT_S)
        except BaseException:
            self._end()
            raise
        self.ready_after_s = time.perf_counter() - started_s
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @property
    def pid(self) -> int:
        """Its first process, which leads the group of the others.

        Raises:
            ServerError: It is not started.
        """
        if self._process is None:
            raise ServerError("not started")
        return self._process.pid

    def pss_bytes(self) -> int:
        """The memory of the server and all its descendants; what several processes share is counted once."""
        return sum(_pss_bytes(process.pid) for process in self._family())

    def _wait_ready(self, process: subprocess.Popen[bytes], deadline_s: float) -> None:
        while True:
            if process.poll() is not None:
                raise ServerError(f"ended with status {process.returncode}: {self._last_words()}")
            left_s = deadline_s - time.perf_counter()
            if left_s <= 0:
                raise ServerError(f"no answer within {START_TIMEOUT_S:g} s: {self._last_words()}")
            with contextlib.suppress(OSError, LoadError), Connection(self.port, left_s) as connection:
                connection.exchange(self.probe)
                return
            time.sleep(POLL_S)

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return " / ".join(lines[-3:])

    def _family(self) -> list[psutil.Process]:
        """The first process and its descendants."""
        if self._process is None or self._process.poll() is not None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            first = psutil.Process(self._process.pid)
            return [first, *first.children(recursive=True)]
        return []

    def _end(self) -> None:
        if self._process is None:
            return
        family = self._family()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_TIMEOUT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for process in family:  # those that made a group of their own
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, END_TIMEOUT_S)  # the next server needs their memory


def _pss_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):  # it may end at any time
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
