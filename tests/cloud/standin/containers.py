"""A container: a process group that is started, probed and ended as Vertex AI does it.

AIP_HTTP_PORT is a free port here; in reality it is the first of the spec's ports. A container that ends before it is
ready fails its deployment at once; in reality it is started again until the deployment's timeout.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

import psutil
import requests
from proto import Message as SdkMessage

from serving.ports import free_ports
from tests.cloud.standin.guard import Guard
from tests.cloud.standin.images import Image

# After SIGTERM; in reality as well.
GRACE_S = 30.0
HEALTH_TIMEOUT_S = 10.0
# How soon it is asked again while it is not up: what makes tests faster than reality, where a period is 10 s.
LOOK_S = 0.1
_INHERITED = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH")
_VARIABLE = re.compile(r"\$\$\(([A-Za-z_][A-Za-z0-9_]*)\)|\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class NeverReady(Exception):
    """It did not come up, or was to end before it did; the message says why, for the stand-in's log."""


@dataclass(frozen=True)
class Place:
    """What Vertex AI tells a container of where it runs.

    Attributes:
        variables: AIP_…, without the port.
        predict_route: Its path for predictions.
        health_route: Its path for health checks.
    """

    variables: Mapping[str, str]
    predict_route: str
    health_route: str


class Container:
    """One container.

    Args:
        spec: A ModelContainerSpec.
        image: What stands for its image.
        place: Where it runs.
        guard: Ends it when this process is gone.
        more: Variables of this machine's own, such as that of the storage emulator.
    """

    def __init__(self, spec: SdkMessage, image: Image, place: Place, guard: Guard, more: Mapping[str, str]) -> None:
        self._spec = spec
        self._image = image
        self._place = place
        self._guard = guard
        self._folder = tempfile.TemporaryDirectory(prefix="container-")
        self.port, *others = free_ports(1 + len(image.port_variables))
        own = {**place.variables, "AIP_HTTP_PORT": str(self.port)}
        given = {one.name: one.value for one in spec.env}
        known = {**own, **given}
        self.environment = {
            **{name: os.environ[name] for name in _INHERITED if name in os.environ},
            **more,
            **image.environment,
            **dict(zip(image.port_variables, map(str, others), strict=True)),
            "TMPDIR": self._folder.name,
            **own,
            **{name: _expanded(value, known) for name, value in given.items()},
        }
        command = [_expanded(word, known) for word in spec.command] or list(image.command)
        # As with Kubernetes: a command of the spec's own leaves the image's CMD out.
        arguments = [_expanded(word, known) for word in spec.args]
        if not arguments and not spec.command:
            arguments = list(image.arguments)
        self._command = image.here([*command, *arguments])
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self.session = requests.Session()
        self.session.trust_env = False

    @property
    def url(self) -> str:
        """Its address, without a route."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def predict_url(self) -> str:
        """Where it predicts."""
        return f"{self.url}{self._place.predict_route}"

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        """Return what it has written."""
        file = Path(self._folder.name) / "log"
        return file.read_text(errors="replace") if file.exists() else ""

    def start(self) -> None:
        """Start it; what becomes of it is `wait_ready`'s to find out."""
        with open(Path(self._folder.name) / "log", "wb") as log:
            try:
                self._process = subprocess.Popen(
                    self._command,
                    cwd=self._image.home,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as err:
                raise NeverReady(f"{self._command[0]}: {err.strerror}") from err
        self._guard.watch(self._process.pid)

    def wait_ready(self, limit_s: float, given_up: Event) -> None:
        """Wait for the startup probe, where there is one, and then for the first good health check.

        Raises:
            NeverReady: It ended, a probe failed as often as it may, or time or patience ran out.
        """
        deadline = time.monotonic() + limit_s
        if "startup_probe" in self._spec:
            self._startup(self._spec.startup_probe, deadline, given_up)
        while not self._healthy():
            self._check(deadline, given_up)
            given_up.wait(LOOK_S)

    def stop(self, grace_s: float = GRACE_S) -> None:
        """End the group: SIGTERM, and after a while SIGKILL."""
        with self._lock:
            if self._process is not None:
                group = self._process.pid
                family = self._family()
                if self._process.poll() is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(group, signal.SIGTERM if grace_s else signal.SIGKILL)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(grace_s or 10)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
                for one in family:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        one.kill()
                self._process.wait(10)
                self._guard.forget(group)
                self._process = None
            self.session.close()
            self._folder.cleanup()

    def _family(self) -> list[psutil.Process]:
        """Return its children: TorchServe's Java has a group of its own."""
        if self._process is None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self._process.pid).children(recursive=True)
        return []

    def _startup(self, probe: SdkMessage, deadline: float, given_up: Event) -> None:
        given_up.wait(probe.initial_delay_seconds)
        failures = successes = 0
        while successes < (probe.success_threshold or 1):
            self._check(deadline, given_up)
            began = time.monotonic()
            if self._probe(probe, lambda: given_up.is_set() or not self.alive):
                successes += 1
                continue
            failures, successes = failures + 1, 0
            if failures >= (probe.failure_threshold or 3):
                raise NeverReady(f"the startup probe failed {failures} times")
            wait_until = began + (probe.period_seconds or 10)
            while time.monotonic() < wait_until and self.alive and not given_up.is_set():
                given_up.wait(LOOK_S)

    def _healthy(self) -> bool:
        if "health_probe" in self._spec:
            return self._probe(self._spec.health_probe, lambda: not self.alive)
        return self._answers(f"{self.url}{self._place.health_route}", HEALTH_TIMEOUT_S)

    def _probe(self, probe: SdkMessage, pointless: Callable[[], bool]) -> bool:
        timeout_s = float(probe.timeout_seconds or 1)
        if "http_get" in probe:
            return self._answers(f"{self.url}{probe.http_get.path}", timeout_s)
        if "tcp_socket" in probe:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout_s):
                return True
            return False
        command = self._image.here(list(probe.exec_.command))
        with open(Path(self._folder.name) / "log", "ab") as log:
            try:
                # Its working directory is the root of the file system, and no shell is between.
                process = subprocess.Popen(
                    command, cwd="/", env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            except OSError:
                return False
            ends = time.monotonic() + timeout_s
            while process.poll() is None and time.monotonic() < ends and not pointless():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK_S)
            if process.poll() is None:
                process.kill()
                process.wait()
                return False
        return process.returncode == 0

    def _answers(self, url: str, timeout_s: float) -> bool:
        try:
            return self.session.get(url, timeout=timeout_s).status_code == 200
        except requests.RequestException:
            return False

    def _check(self, deadline: float, given_up: Event) -> None:
        if given_up.is_set():
            raise NeverReady("it was not wanted any more")
        if not self.alive:
            status = self._process.poll() if self._process else None
            raise NeverReady(f"it ended with status {status}")
        if time.monotonic() > deadline:
            raise NeverReady("time ran out")


def _expanded(word: str, known: Mapping[str, str]) -> str:
    """Return a word with $(NAME) replaced where the name is known, and $$(NAME) as $(NAME)."""

    def value(found: re.Match[str]) -> str:
        return f"$({found[1]})" if found[1] else known.get(found[2], found[0])

    return _VARIABLE.sub(value, word)
