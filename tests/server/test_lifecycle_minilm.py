"""The demo model's life: the printed curl line, a worker killed under load, SIGTERM under load."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

from tests.server.running import Serve, Server

TEXTS = [f"text number {number} of a request that takes a while" for number in range(16)]


def predict(server: Server, texts: list[str]) -> tuple[int, list[list[float]]]:
    """Return the status and the vectors, none unless the status is 200."""
    answer = requests.post(server.predictions("minilm"), json={"instances": texts}, timeout=120)
    return answer.status_code, answer.json()["predictions"] if answer.status_code == 200 else []


def test_the_demo_model_lives_heals_and_ends(serve: Serve, minilm_store: Path) -> None:
    server = serve(minilm_store, "minilm", arguments=("--print-curl",))
    (curl,) = [message for message in server.messages("INFO") if message.startswith("curl ")]
    printed = subprocess.run(shlex.split(curl), capture_output=True, text=True, timeout=60, check=True)
    (hello,) = json.loads(printed.stdout)["predictions"]
    assert [round(value, 3) for value in hello[:3]] == [-0.034, 0.031, 0.007]
    assert server.messages("WARNING") == []
    assert server.probe().returncode == 0

    victims = server.workers()
    assert predict(server, TEXTS)[0] == 200
    with ThreadPoolExecutor(8) as pool:
        load = [pool.submit(predict, server, TEXTS) for _ in range(24)]
        time.sleep(0.5)
        for victim in victims:
            victim.kill()
        answers = Counter(future.result()[0] for future in load)
    # Lost is what the workers held, at most a batch of 16 requests each; all others waited for the new ones.
    assert set(answers) <= {200, 500, 507}
    assert answers[500] + answers[507] <= 8
    assert answers[200] >= 16
    assert not {one.pid for one in victims} & {one.pid for one in server.workers()}
    assert predict(server, ["hello world"]) == (200, [hello])
    server.wait_for(lambda: server.probe().returncode == 0, 30, "the probe to turn back")

    with ThreadPoolExecutor(8) as pool:
        load = [pool.submit(predict, server, TEXTS) for _ in range(8)]
        time.sleep(0.2)
        server.family()
        os.kill(server.pid, signal.SIGTERM)
        assert Counter(future.result()[0] for future in load) == {200: 8}
    assert server.wait_exit() == 143
    assert server.messages("INFO")[-1] == "everything in flight is answered"
    assert server.survivors() == []
    assert server.leftovers() == []
