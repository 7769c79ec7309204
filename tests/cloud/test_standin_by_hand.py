"""The stand-in as a command: what it writes for people, and that nothing is left of it, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import requests

from tests.cloud.client import PARENT
from tests.cloud.images import STUB

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 60


@contextmanager
def command(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run it, with a stub for its one image."""
    arguments = [sys.executable, "-m", "tests.cloud.standin", f"{STUB}=stub", "--folder", str(folder)]
    # What a killed one leaves lies in the test's own folder.
    environment = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.Popen(arguments, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=DEADLINE_S)


def call(address: str, verb: str, path: str, body: object = None) -> dict[str, object]:
    url = f"{address}/v1/{path if path.startswith('projects/') else f'{PARENT}/{path}'}"
    answer = requests.request(verb, url, json=body, headers={"Authorization": "Bearer a-token"}, timeout=30)
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


def finish(address: str, operation: dict[str, object]) -> None:
    done = call(address, "POST", f"{operation['name']}:wait")
    assert done["done"] is True
    assert "error" not in done


def deploy(address: str) -> None:
    container = {"imageUri": STUB, "predictRoute": "/predict", "healthRoute": "/ping"}
    model = {"displayName": "demo", "containerSpec": container}
    finish(address, call(address, "POST", "models:upload", {"modelId": "demo", "model": model}))
    finish(address, call(address, "POST", "endpoints?endpointId=home", {"displayName": "home"}))
    deployed = {
        "model": f"{PARENT}/models/demo",
        "dedicatedResources": {"machineSpec": {"machineType": "n1-standard-2"}, "minReplicaCount": 1},
    }
    body = {"deployedModel": deployed, "trafficSplit": {"0": 100}}
    finish(address, call(address, "POST", "endpoints/home:deployModel", body))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_container_outlives_it(number: signal.Signals, tmp_path: Path) -> None:
    with command(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        info = json.loads((tmp_path / "info.json").read_text())
        deploy(info["address"])
        family = psutil.Process(process.pid).children(recursive=True)
        (container,) = [one for one in family if "stub_server.py" in " ".join(one.cmdline())]
        os.kill(process.pid, number)
        process.wait(DEADLINE_S)
        deadline = time.monotonic() + DEADLINE_S
        while any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in [container, *family]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert process.returncode == (0 if number == signal.SIGINT else -number)


def test_what_it_writes_for_a_shell(tmp_path: Path) -> None:
    with command(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        info = json.loads((tmp_path / "info.json").read_text())
        told = subprocess.run(
            ["sh", "-c", f'. {tmp_path}/sdk.sh; echo "$HTTPS_PROXY $grpc_proxy $PROJECT $REQUESTS_CA_BUNDLE"'],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=True,
        )
    assert told.stdout.split() == [info["proxy"], info["grpc_proxy"], "demo-project", info["authority"]]
    assert "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM" in (tmp_path / "gcloud.sh").read_text()
