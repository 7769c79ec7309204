"""One container for as long as a `with` block, and what a test asks of it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tests.image.machine import Machine

READY_DEADLINE_S = 120.0
PYTHON = "python"
PROBE = (PYTHON, "/home/model-server/serving/ready.py")


class Container:
    """A container of an image, created with its object and started with the block.

    Args:
        machine: podman.
        image: The image's name.
        *options: Options of `podman run`.
        command: What stands after the image.
        wait: Wait for READY.

    Attributes:
        id: The container's.
        ready_s: From before it was created to READY as seen from outside.
    """

    def __init__(
        self, machine: Machine, image: str, *options: str, command: tuple[str, ...] = (), wait: bool = True
    ) -> None:
        self._machine = machine
        self._started = time.monotonic()
        self.id = machine.podman("create", *options, image, *command).stdout.split()[-1]
        self.ready_s = 0.0
        self._wait = wait

    def __enter__(self) -> Container:
        try:
            self._machine.podman("start", self.id)
            if self._wait:
                self.wait_ready()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def wait_ready(self) -> None:
        """Wait for the READY line."""
        deadline = time.monotonic() + READY_DEADLINE_S
        while not any(message.startswith("READY after") for message in self.messages()):
            assert self.running(), f"ended with {self.exit_status()}:\n{self.log()}"
            assert time.monotonic() < deadline, f"not READY:\n{self.log()}"
            time.sleep(0.1)
        self.ready_s = time.monotonic() - self._started

    def log(self) -> str:
        """Return everything that the container has written."""
        done = self._machine.podman("logs", self.id)
        return done.stdout + done.stderr

    def events(self) -> list[Mapping[str, str]]:
        """Return the log's events; a line that is no JSON object fails the test."""
        return [json.loads(line) for line in self.log().splitlines()]

    def messages(self, severity: str | None = None) -> list[str]:
        """Return the events' texts, of one severity or all."""
        return [one["message"] for one in self.events() if severity in (None, one["severity"])]

    def exec(self, *command: str, check: bool = True, sent: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command inside; what is sent is its standard input."""
        return self._machine.podman("exec", "--interactive", self.id, *command, check=check, sent=sent)

    def probe(self) -> subprocess.CompletedProcess[str]:
        """Run the readiness probe as an orchestrator does."""
        return self.exec(*PROBE, check=False)

    def ask(self, model: str, instances: list[Any], port: int = 7080) -> list[Any]:
        """Send instances from inside, where no network is needed, and return the predictions."""
        code = (
            "import json, sys, urllib.request as r; "
            "q = r.Request(sys.argv[1], sys.stdin.buffer.read(), {'Content-Type': 'application/json'}); "
            "print(r.urlopen(q, timeout=60).read().decode())"
        )
        url = f"http://127.0.0.1:{port}/predictions/{model}"
        answer = self.exec(PYTHON, "-c", code, url, sent=json.dumps({"instances": instances})).stdout
        predictions: list[Any] = json.loads(answer)["predictions"]
        return predictions

    def inspect(self) -> Mapping[str, Any]:
        """Return what podman knows of it."""
        known: Mapping[str, Any] = json.loads(self._machine.podman("inspect", self.id).stdout)[0]
        return known

    def changes(self) -> list[str]:
        """Return what differs from the image: a letter and a path each."""
        return self._machine.podman("diff", self.id).stdout.splitlines()

    def running(self) -> bool:
        """Return whether it still runs."""
        return bool(self.inspect()["State"]["Running"])

    def exit_status(self) -> int:
        """Return the exit status of its PID 1."""
        return int(self.inspect()["State"]["ExitCode"])

    def wait_exit(self, deadline_s: float = 60.0) -> int:
        """Wait until it ends and return its exit status."""
        self._machine.podman("wait", self.id, timeout_s=deadline_s)
        return self.exit_status()

    def signal(self, name: str) -> None:
        """Send a signal to its PID 1."""
        self._machine.podman("kill", "--signal", name, self.id)

    def remove(self) -> None:
        """End it at once and remove it."""
        self._machine.podman("rm", "--force", "--time", "0", self.id)
