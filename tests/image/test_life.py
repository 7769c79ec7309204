"""A container's life: not ready, ready, asked, ended by each of the ways in which containers end."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from serving.ports import free_ports
from tests.image.container import Container
from tests.image.machine import Machine

ROOT = Path(__file__).resolve().parents[2]
FEATURED = ["hello world", "日本の薔薇農家"]


@pytest.fixture(scope="module")
def minilm(machine: Machine, minilm_image: str) -> Iterator[tuple[Container, int]]:
    """Return a READY container whose port is published, and the port."""
    (port,) = free_ports(1)
    with Container(machine, minilm_image, "--publish", f"127.0.0.1:{port}:7080") as container:
        yield container, port


def test_not_ready_then_ready(
    machine: Machine, minilm_image: str, record_testsuite_property: Callable[[str, object], None]
) -> None:
    with Container(machine, minilm_image, "--network", "none", wait=False) as container:
        states = []
        while (probe := container.probe()).returncode != 0:
            states.append(probe.stderr)
            assert len(states) < 500, container.log()
        assert states, "the probe was never asked before READY"
        assert all(state.startswith("not ready: ") for state in states)
        container.wait_ready()
        record_testsuite_property("ready_s", container.ready_s)
        print(f"\nREADY {container.ready_s:.1f} s after podman run; {container.messages()[-1]}")  # noqa: T201
        assert len(container.ask("minilm", FEATURED)) == 2


def test_nothing_is_unpacked_or_written_at_a_start(minilm: tuple[Container, int]) -> None:
    container, _ = minilm
    assert not any(message.startswith("unpacked") for message in container.messages())
    changed = [line for line in container.changes() if not re.match(r"[AC] /(tmp|run|var|etc|dev|proc|sys)(/|$)", line)]
    assert changed == []


def test_every_curl_line_of_the_readme(minilm: tuple[Container, int]) -> None:
    """The README's requests to the port of predictions, word for word but for the port."""
    _, port = minilm
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^    (curl (?:[^\n\\]|\\\n|\\.)*)", text, flags=re.MULTILINE)
    asked = [
        line.replace("127.0.0.1:7080", f"127.0.0.1:{port}") for line in lines if ":7080/predictions/minilm" in line
    ]
    assert asked
    for line in asked:
        done = subprocess.run(["bash", "-c", f"{line} --max-time 60"], capture_output=True, text=True, check=True)
        assert done.stdout.startswith('{"predictions":[['), (line, done.stdout)


def test_sigterm_drains_what_is_in_flight(machine: Machine, minilm_image: str) -> None:
    (port,) = free_ports(1)
    with Container(machine, minilm_image, "--publish", f"127.0.0.1:{port}:7080") as container:
        answers: list[int] = []

        def ask() -> None:
            body = {"instances": ["a sentence that takes some time to embed " * 8] * 600}
            answers.append(
                requests.post(f"http://127.0.0.1:{port}/predictions/minilm", json=body, timeout=60).status_code
            )

        asking = threading.Thread(target=ask)
        asking.start()
        deadline = time.monotonic() + 30
        while not busy(container):
            assert time.monotonic() < deadline, container.log()
        started = time.monotonic()
        container.signal("TERM")
        assert container.wait_exit() == 143
        asking.join()
        assert answers == [200]
        assert time.monotonic() - started < 30
        assert container.messages()[-1] == "everything in flight is answered"


def busy(container: Container) -> bool:
    """Return whether a worker has a batch in hand."""
    code = (
        "import sys; sys.path.insert(0, '/home/model-server')\n"
        "from serving.state_socket import ask_state\n"
        "print(any(one['busy_s'] is not None for one in ask_state(7080, 5).progress.values()))"
    )
    return container.exec("python", "-c", code).stdout == "True\n"


def test_podman_stop_is_no_kill(machine: Machine, minilm_image: str) -> None:
    with Container(machine, minilm_image, "--network", "none") as container:
        machine.podman("stop", "--time", "30", container.id)
        assert container.exit_status() == 143


def test_ctrl_c_ends_with_zero(machine: Machine, minilm_image: str) -> None:
    with Container(machine, minilm_image, "--network", "none") as container:
        container.signal("INT")
        assert container.wait_exit() == 0


def pids(container: Container, pattern: str) -> list[str]:
    """Return the processes inside whose command line matches."""
    code = (
        "import glob, re, sys\n"
        "for path in glob.glob('/proc/[0-9]*/cmdline'):\n"
        "    try: line = open(path).read().replace('\\0', ' ')\n"
        "    except OSError: continue\n"
        "    if re.search(sys.argv[1], line) and '-c' not in line.split(): print(path.split('/')[2])\n"
    )
    return container.exec("python", "-c", code, pattern).stdout.split()


def test_without_java_the_container_ends(machine: Machine, minilm_image: str) -> None:
    with Container(machine, minilm_image, "--network", "none") as container:
        (java,) = pids(container, r"^\S*java .*ModelServer")
        container.exec("bash", "-c", f"kill -9 {java}")
        assert container.wait_exit() == 1
        assert container.messages("CRITICAL") == [container.messages()[-1]]
        assert container.messages()[-1].startswith("TorchServe's Java ended with status 137")


def test_a_killed_worker_comes_back(machine: Machine, minilm_image: str) -> None:
    with Container(machine, minilm_image, "--network", "none") as container:
        workers = pids(container, "model_service_worker")
        assert workers
        container.exec("bash", "-c", f"kill -9 {' '.join(workers)}")
        deadline = time.monotonic() + 60
        while container.probe().returncode != 0 or set(pids(container, "model_service_worker")) & set(workers):
            assert time.monotonic() < deadline, container.log()
            time.sleep(0.2)
        assert len(container.ask("minilm", FEATURED)) == 2
        zombies = container.exec("bash", "-c", "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null || true").stdout
        assert zombies == ""
