"""The probe beside a real server: before, during and after its life, from the folder / and on Python 3.9."""

from __future__ import annotations

import glob
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from tests.server.running import ROOT, Serve, Server


def test_not_ready_before_and_ready_after_the_load(serve: Serve, echo_store: Path) -> None:
    server = serve(echo_store, "echo", wait=False)
    assert server.probe().stderr.startswith(f"not ready: no marvec server runs on port {server.port}")
    server.wait_for(lambda: "is starting" in server.probe().stderr, 30, "the launcher")
    server.wait_ready()
    probe = server.probe()
    assert (probe.returncode, probe.stdout, probe.stderr) == (0, "", "")


def test_it_waits_for_as_long_as_it_is_told(serve: Serve, echo_store: Path) -> None:
    server = serve(echo_store, "echo", wait=False)
    waited = server.probe("--wait", "50")
    assert (waited.returncode, waited.stdout, waited.stderr) == (0, "", "")
    assert any(message.startswith("READY after") for message in server.messages())
    server.terminate()
    started = time.monotonic()
    gone = server.probe("--wait", "1.5")
    assert gone.returncode == 1
    assert gone.stderr.startswith(f"not ready: no marvec server runs on port {server.port}")
    assert 1.5 <= time.monotonic() - started < 10


def test_a_worker_in_a_long_batch_is_busy_not_dead(echo: Server) -> None:
    with ThreadPoolExecutor(1) as pool:
        time.sleep(5.1)  # so that no fresh reply vouches for the worker
        slow = pool.submit(requests.post, echo.predictions("echo"), json={"sleep": 6}, timeout=30)
        time.sleep(0.5)
        started = time.monotonic()
        probe = echo.probe()
        assert (probe.returncode, probe.stderr) == (0, "")
        assert time.monotonic() - started < 5
        assert slow.result().status_code == 200


def test_a_silent_worker_is_taken_for_busy_at_first(echo: Server) -> None:
    worker = echo.workers()[0]
    time.sleep(5.1)
    worker.suspend()
    try:
        # The describe call itself is now the batch in hand, for 3 seconds: no proof of death yet.
        assert echo.probe().returncode == 0
    finally:
        worker.resume()
    assert echo.probe().returncode == 0


def test_wrong_ports_are_said(echo: Server) -> None:
    environment = {**echo.environment, "AIP_HTTP_PORT": "http"}
    command = [sys.executable, str(ROOT / "serving" / "ready.py")]
    probe = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=20, check=False)
    assert probe.returncode == 1
    assert probe.stderr.startswith("not ready: AIP_HTTP_PORT='http': expected a port number from 1 to 65535")


def test_the_probe_runs_on_python_39(echo: Server) -> None:
    found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.9.*/bin/python")))
    if not found:
        pytest.skip("no Python 3.9 on this machine")
    command = [found[0], str(ROOT / "serving" / "ready.py")]
    probe = subprocess.run(
        command, env=echo.environment, cwd="/", capture_output=True, text=True, timeout=20, check=False
    )
    assert (probe.returncode, probe.stderr) == (0, "")
