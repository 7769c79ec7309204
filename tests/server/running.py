"""A server as a user starts it, `python -m serving.launch`, for as long as a `with` block.

with Server(store, "minilm") as server:
requests.post(server.predictions("minilm"), json={"instances": ["a"]}, timeout=30)
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol

import psutil

from serving.ports import free_ports

ROOT = Path(__file__).resolve().parent.parent.parent
# Four models that load at once on two busy cores take their time.
READY_DEADLINE_S = 300.0
EXIT_DEADLINE_S = 40.0
# The tests' own machine may set these; a server under test starts from nothing.
CLEARED = (
    "AIP_HTTP_PORT",
    "PORT",
    "MARVEC_MANAGEMENT_PORT",
    "MARVEC_METRICS_PORT",
    "MARVEC_LOG_LEVEL",
    "OMP_NUM_THREADS",
)


class ServerFailed(Exception):
    """The server ended, or was not READY in time; the message holds its log."""


class Server:
    """One launcher with all that it starts.

    Args:
        store: The model store.
        *models: What to serve, as on the command line; everything when there is none.
        environment: Variables over the test's own.
        arguments: More of the command line.
        command: What to run instead of `python -m serving.launch`.
        cwd: Where to run it.

    Attributes:
        port: Predictions.
        management_port: Models and workers.
        metrics_port: Prometheus text.
        process: The launcher.
    """

    def __init__(
        self,
        store: Path,
        *models: str,
        environment: Mapping[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        command: tuple[str, ...] = (sys.executable, "-m", "serving.launch"),
        cwd: Path = ROOT,
    ) -> None:
        self.port, self.management_port, self.metrics_port = free_ports(3)
        self._folder = tempfile.TemporaryDirectory(prefix="mt-")
        self.tmp = Path(self._folder.name)
        self._log = self.tmp / "log"
        inherited = {name: value for name, value in os.environ.items() if name not in CLEARED}
        self.environment = {
            **inherited,
            "AIP_HTTP_PORT": str(self.port),
            "MARVEC_MANAGEMENT_PORT": str(self.management_port),
            "MARVEC_METRICS_PORT": str(self.metrics_port),
            "TMPDIR": str(self.tmp),
            **(environment or {}),
        }
        self._command = [*command, *models, "--model-store", str(store), *arguments]
        self._cwd = cwd
        self.process: subprocess.Popen[bytes] | None = None
        self._family: list[psutil.Process] = []

    def __enter__(self) -> Server:
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The inference address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def management_url(self) -> str:
        """The management address."""
        return f"http://127.0.0.1:{self.management_port}"

    @property
    def metrics_url(self) -> str:
        """The address of the Prometheus text."""
        return f"http://127.0.0.1:{self.metrics_port}/metrics"

    @property
    def pid(self) -> int:
        """The launcher's process id."""
        return self._running().pid

    def predictions(self, model: str) -> str:
        """Return a model's prediction URL."""
        return f"{self.url}/predictions/{model}"

    def start(self) -> None:
        """Start the launcher and return at once."""
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                self._command, stdout=log, stderr=subprocess.STDOUT, env=self.environment, cwd=self._cwd
            )

    def wait_ready(self, deadline_s: float = READY_DEADLINE_S) -> None:
        """Wait for the READY line.

        Raises:
            ServerFailed: The launcher ended, or the deadline passed.
        """
        self.wait_for(lambda: any(text.startswith("READY after") for text in self.messages()), deadline_s, "READY")
        self.family()

    def wait_for(self, happened: Callable[[], bool], deadline_s: float, what: str) -> None:
        """Wait until something has happened.

        Raises:
            ServerFailed: The launcher ended before, or the deadline passed.
        """
        deadline = time.monotonic() + deadline_s
        while not happened():
            if self._running().poll() is not None:
                raise ServerFailed(f"ended with {self._running().returncode} before {what}:\n{self.log()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"no {what} in {deadline_s:g} s:\n{self.log()}")
            time.sleep(0.05)

    def log(self) -> str:
        """Return everything that the server has written."""
        return self._log.read_text(errors="replace")

    def events(self) -> list[Mapping[str, str]]:
        """Return the log's events; a line that is no JSON object fails the test."""
        return [json.loads(line) for line in self.log().splitlines(keepends=True) if line.endswith("\n")]

    def messages(self, severity: str | None = None) -> list[str]:
        """Return the events' texts, of one severity or all."""
        return [one["message"] for one in self.events() if severity in (None, one["severity"])]

    def family(self) -> list[psutil.Process]:
        """Return Java and the workers, as far as they have been seen alive; the latest look included."""
        if self._running().poll() is None:
            known = {one.pid for one in self._family}
            now = psutil.Process(self.pid).children(recursive=True)
            self._family += [one for one in now if one.pid not in known]
        return self._family

    def survivors(self) -> list[psutil.Process]:
        """Return those of the family that still run."""
        return [one for one in self._family if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]

    def java(self) -> psutil.Process:
        """Return TorchServe's Java."""
        return next(one for one in psutil.Process(self.pid).children() if "java" in one.name())

    def workers(self) -> list[psutil.Process]:
        """Return the running workers."""
        return [one for one in self.java().children() if "model_service_worker" in " ".join(one.cmdline())]

    def leftovers(self) -> list[str]:
        """Return the names of what lies in the server's temporary folder beside its log."""
        return sorted(one.name for one in self.tmp.iterdir() if one != self._log)

    def probe(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run serving/ready.py as an exec probe does."""
        command = [sys.executable, str(ROOT / "serving" / "ready.py"), *arguments]
        return subprocess.run(
            command, env=self.environment, cwd="/", capture_output=True, text=True, timeout=60, check=False
        )

    def terminate(self, number: int = signal.SIGTERM, deadline_s: float = EXIT_DEADLINE_S) -> int:
        """Send a signal and return the exit status."""
        self.family()
        self._running().send_signal(number)
        return self.wait_exit(deadline_s)

    def wait_exit(self, deadline_s: float = EXIT_DEADLINE_S) -> int:
        """Return the exit status, negative for a signal's.

        Raises:
            ServerFailed: It still runs at the deadline.
        """
        try:
            return self._running().wait(deadline_s)
        except subprocess.TimeoutExpired as err:
            raise ServerFailed(f"still running after {deadline_s:g} s:\n{self.log()}") from err

    def close(self) -> None:
        """End everything, by force where it must be."""
        if self.process is not None:
            if self.process.poll() is None:
                self.family()
                # Twice: a test that is over waits for no drain.
                self.process.send_signal(signal.SIGTERM)
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.process.wait(10)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
            for one in self.survivors():
                one.kill()
        self._folder.cleanup()

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            raise ServerFailed("not started")
        return self.process


class Serve(Protocol):
    """What the fixture `serve` gives: a started, READY server that ends with the test."""

    def __call__(
        self,
        store: Path,
        *models: str,
        environment: Mapping[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        wait: bool = True,
    ) -> Server:
        """Start a server; `wait=False` returns before it is READY."""
