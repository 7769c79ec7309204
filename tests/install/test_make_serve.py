"""`make serve` as the README has it: a fresh copy, one command, a curl, Ctrl-C; and the second time at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from tests.install.other_pythons import copy_project

START_TIMEOUT_S = 240
END_TIMEOUT_S = 40

pytestmark = [
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
    pytest.mark.skipif(
        not Path(sys.prefix, "bin", "marvec").exists(), reason="this environment was not made by `make setup`"
    ),
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a fresh copy of the project that shares this environment, which took minutes to make."""
    project = copy_project(tmp_path / "project")
    (project / ".venv").symlink_to(sys.prefix)
    return project


def free_ports(count: int) -> list[int]:
    """Return ports that are free now, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


@contextmanager
def make_serve(clone: Path, ports: list[int]) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run `make serve` in a process group of its own; yield it and its log; nothing of it outlives the block."""
    log = clone / "serve.log"
    names = ("AIP_HTTP_PORT", "MARVEC_MANAGEMENT_PORT", "MARVEC_METRICS_PORT")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    environment |= {name: str(port) for name, port in zip(names, ports, strict=True)}
    with log.open("wb") as sink:
        server = subprocess.Popen(
            # -o: the environment is there already, whatever the times of the copied files say.
            ["make", "-o", ".venv/.setup", "serve"],
            cwd=clone,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield server, log
    finally:
        for process in [*psutil.Process(server.pid).children(recursive=True)] if server.poll() is None else []:
            process.kill()
        server.kill()
        server.wait()


def wait_for_curl_line(server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the log shows the curl line, which comes when the server is READY."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while "curl -s http://127.0.0.1:" not in log.read_text(encoding="utf-8"):
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"make serve is not READY (status {server.poll()}):\n{log.read_text(encoding='utf-8')}")
        time.sleep(0.1)


def test_make_serve_packs_serves_and_ends_and_starts_again_without_packing(clone: Path) -> None:
    for packs in (True, False):
        ports = free_ports(3)
        with make_serve(clone, ports) as (server, log):
            wait_for_curl_line(server, log)
            family = psutil.Process(server.pid).children(recursive=True)
            request = urllib.request.Request(
                f"http://127.0.0.1:{ports[0]}/predictions/minilm",
                data=json.dumps({"instances": ["hello world", "goodbye"]}).encode(),
                headers={"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as response:
                assert response.status == 200
                assert [len(vector) for vector in json.load(response)["predictions"]] == [384, 384]
            assert ("all-MiniLM-L6-v2" in log.read_text(encoding="utf-8")) is packs

            os.killpg(server.pid, signal.SIGINT)  # what a terminal does at Ctrl-C
            assert server.wait(END_TIMEOUT_S) == -signal.SIGINT
            assert "***" not in log.read_text(encoding="utf-8")
            assert len(family) >= 3  # marvec, Java, a worker
            _, alive = psutil.wait_procs(family, timeout=5)
            assert alive == []
    assert [file.name for file in (clone / "model_store").iterdir() if file.name != "README.md"] == ["minilm.mar"]
