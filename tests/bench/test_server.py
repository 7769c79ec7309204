"""A server's life: ready when it answers, its memory, and that nothing of it is left."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from bench import server as servers
from bench.memory import MemoryWatch
from bench.server import Launch, Server, ServerError
from tests.bench.conftest import MakeServer

PARENT = "import subprocess, sys; print(subprocess.run([sys.executable, *sys.argv[1:]]).returncode)"


def test_a_server_is_ready_when_it_has_answered(http_server: MakeServer, tmp_path: Path) -> None:
    with http_server("ok") as server:
        assert '"POST / HTTP/1.1" 200 -' in (tmp_path / "log").read_text()
        assert server.ready_after_s > 0


def test_one_that_ends_is_told_with_its_last_words(http_server: MakeServer) -> None:
    with pytest.raises(ServerError, match=r"^ended with status 1: no memory / for this$"), http_server("exit"):
        pass


def test_one_that_does_not_answer_is_ended(http_server: MakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "START_TIMEOUT_S", 1.0)
    with pytest.raises(ServerError, match=r"^no answer within 1 s: "), http_server("close"):
        pass


def test_children_count_and_end_with_it(http_server: MakeServer, tmp_path: Path) -> None:
    alone = http_server("big")
    script = list(alone.launch.command[1:])
    launch = Launch([sys.executable, "-c", PARENT, *script], alone.port, tmp_path)
    with Server(launch, alone.probe, tmp_path / "log") as server:
        (child,) = psutil.Process(server.pid).children()
        with MemoryWatch(server, 0.05) as watch:
            pass
        assert watch.pss_bytes[0] > 40_000_000  # the child's
        assert len(watch.seconds) == len(watch.pss_bytes)
    assert not child.is_running()
    assert server.pss_bytes() == 0


def test_a_server_keeps_to_the_cores_it_is_given(http_server: MakeServer, tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    alone = http_server("ok")
    with Server(alone.launch, alone.probe, tmp_path / "log", cores=[core]) as server:
        assert psutil.Process(server.pid).cpu_affinity() == [core]
