"""What happens to a running server: killed workers, signals, a dead Java, a full queue, neighbours."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import requests

from tests.server.running import ROOT, Serve, Server


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as executor:
        yield executor


def post(server: Server, body: Mapping[str, float | str]) -> int:
    """Send one request and return its status, 0 where there was no answer; a wrong echo is an error."""
    try:
        answer = requests.post(server.predictions("echo"), json=body, timeout=60)
    except requests.ConnectionError:
        return 0
    if answer.status_code == 200:
        assert answer.json() == body
    return answer.status_code


def statuses(futures: list[Future[int]]) -> Counter[int]:
    return Counter(future.result(timeout=90) for future in futures)


def wait_until_gone(server: Server, deadline_s: float = 20.0) -> list[psutil.Process]:
    deadline = time.monotonic() + deadline_s
    while server.survivors() and time.monotonic() < deadline:
        time.sleep(0.1)
    return server.survivors()


def test_a_worker_killed_under_load_is_replaced(serve: Serve, echo_store: Path, pool: ThreadPoolExecutor) -> None:
    server = serve(echo_store, "echo")
    victim = server.workers()[0]
    load = [pool.submit(post, server, {"sleep": 0.2, "n": number}) for number in range(40)]
    time.sleep(0.6)
    victim.kill()
    server.wait_for(lambda: server.probe().returncode == 1, 10, "the probe to turn")
    assert "model echo has no READY worker" in server.probe().stderr
    server.wait_for(lambda: server.probe().returncode == 0, 60, "another worker")
    answers = statuses(load)
    # Only the batch that the dead worker held is lost: 507 (exit status 137), or 500 when Java has not seen that yet.
    lost = answers[500] + answers[507]
    assert set(answers) <= {200, 500, 507}
    assert 1 <= lost <= 4
    assert [post(server, {"n": number}) for number in range(5)] == [200] * 5
    assert len(server.workers()) == 1
    assert server.workers()[0].pid != victim.pid
    assert server.terminate() == 143


def test_sigterm_under_load_answers_what_is_in_flight(serve: Serve, echo_store: Path, pool: ThreadPoolExecutor) -> None:
    server = serve(echo_store, "echo")
    load = [pool.submit(post, server, {"sleep": 0.25, "n": number}) for number in range(12)]
    time.sleep(0.5)
    server.family()
    os.kill(server.pid, signal.SIGTERM)
    time.sleep(0.1)
    probe = server.probe()
    assert probe.returncode == 1
    assert probe.stderr.startswith(f"not ready: the server on port {server.port} is draining")
    assert statuses(load) == {200: 12}
    assert server.wait_exit() == 143
    assert server.messages("INFO")[-1] == "everything in flight is answered"
    assert wait_until_gone(server) == []
    assert server.leftovers() == []
    assert server.probe().stderr.startswith(f"not ready: no marvec server runs on port {server.port}")


def test_the_drain_is_bounded(serve: Serve, echo_store: Path, pool: ThreadPoolExecutor) -> None:
    server = serve(echo_store, "echo", environment={"MARVEC_DRAIN_TIMEOUT_S": "1"})
    slow = pool.submit(post, server, {"sleep": 30})
    time.sleep(0.5)
    started = time.monotonic()
    assert server.terminate() == 143
    assert time.monotonic() - started < 10
    assert server.messages("WARNING")[-1] == "ending with requests in flight"
    assert slow.result(timeout=10) == 0
    assert wait_until_gone(server) == []


def test_a_second_signal_ends_at_once(serve: Serve, echo_store: Path, pool: ThreadPoolExecutor) -> None:
    server = serve(echo_store, "echo")
    slow = pool.submit(post, server, {"sleep": 30})
    time.sleep(0.5)
    server.family()
    os.kill(server.pid, signal.SIGINT)
    time.sleep(0.5)
    started = time.monotonic()
    # Ctrl-C's status is 0: it is how `make serve` ends.
    assert server.terminate(signal.SIGINT) == 0
    assert time.monotonic() - started < 5
    assert slow.result(timeout=10) == 0
    assert wait_until_gone(server) == []
    assert server.leftovers() == []


def test_sigterm_before_ready_ends_everything(serve: Serve, echo_store: Path) -> None:
    server = serve(echo_store, "echo", wait=False)
    server.wait_for(lambda: len(server.family()) >= 2, 30, "Java and a worker")
    assert server.terminate() == 143
    assert server.messages()[-1] == "SIGTERM before READY: ending"
    assert wait_until_gone(server) == []
    assert server.leftovers() == []


def test_a_dead_java_ends_the_launcher(serve: Serve, echo_store: Path) -> None:
    server = serve(echo_store, "echo")
    server.java().kill()
    assert server.wait_exit() == 1
    assert server.messages("CRITICAL") == ["TorchServe's Java ended with status 137"]
    assert wait_until_gone(server) == []
    assert server.leftovers() == []


def test_a_killed_launcher_takes_java_and_workers_along(serve: Serve, echo_store: Path) -> None:
    server = serve(echo_store, "echo")
    assert len(server.family()) >= 2
    assert server.terminate(signal.SIGKILL) == -signal.SIGKILL
    assert wait_until_gone(server) == []
    # What it could not remove, the next boot removes.
    left = server.leftovers()
    assert len(left) == 1
    after = Server(echo_store, "echo", environment={"TMPDIR": str(server.tmp)})
    with after:
        assert left[0] not in server.leftovers()


def test_a_full_queue_is_a_503(serve: Serve, echo_store: Path, tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    config = tmp_path / "config.properties"
    text = (ROOT / "config.properties").read_text().replace("job_queue_size=100", "job_queue_size=2")
    config.write_text(text.replace("metrics_config=", f"metrics_config={ROOT}/"))
    server = serve(echo_store, "echo", arguments=("--config", str(config)))
    first = pool.submit(post, server, {"sleep": 3})
    time.sleep(0.5)
    load = [pool.submit(post, server, {"n": number}) for number in range(6)]
    # One in the worker, two in the queue, the other four refused; and busy is not dead.
    assert server.probe().returncode == 0
    assert statuses([first, *load]) == {200: 3, 503: 4}
    assert [post(server, {"n": 1})] == [200]


def test_two_servers_run_side_by_side(serve: Serve, echo_store: Path) -> None:
    one = serve(echo_store, "echo", wait=False)
    two = serve(echo_store, "echo", wait=False, environment={"TMPDIR": str(one.tmp)})
    one.wait_ready()
    two.wait_ready()
    assert {one.workers()[0].pid} != {two.workers()[0].pid}
    assert [post(one, {"n": 1}), post(two, {"n": 2})] == [200, 200]
    assert one.terminate() == 143
    assert post(two, {"n": 3}) == 200
    assert two.probe().returncode == 0
    assert two.terminate() == 143
    assert one.leftovers() == []


def test_requests_up_to_10_mib_pass_many_at_a_time(echo: Server, pool: ThreadPoolExecutor) -> None:
    full = b"x" * (10 << 20)
    octets = {"Content-Type": "application/octet-stream"}
    answers = [
        pool.submit(requests.post, echo.predictions("echo"), full, headers=octets, timeout=60) for _ in range(24)
    ]
    assert [answer.result().json() for answer in answers] == [{"bytes": 10 << 20}] * 24
    too_long = requests.post(echo.predictions("echo"), data=b"x" * ((10 << 20) + 1), timeout=60)
    assert (too_long.status_code, too_long.content) == (413, b"")
    assert post(echo, {"n": 1}) == 200


def test_our_metrics_reach_the_prometheus_endpoint(echo: Server) -> None:
    assert post(echo, {"n": 1}) == 200
    values: dict[str, float] = {}
    for line in requests.get(echo.metrics_url, timeout=10).text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            values[name.partition("Hostname")[0]] = float(value)
    calls = values['MarvecTokens{ModelName="echo",Level="Model",'] / 7
    assert calls >= 1
    assert values['MarvecTexts{ModelName="echo",Level="Model",'] == 2 * calls
    assert values['MarvecTruncatedTexts{ModelName="echo",Level="Model",'] == calls
    assert values['MarvecRefusedRequests{Status="413",ModelName="echo",Level="Model",'] == calls
    assert values['MarvecBatchFill{ModelName="echo",Level="Model",'] == 0.5


def test_the_log_is_json_with_one_line_a_request_and_no_text_of_it(echo: Server) -> None:
    before = len(echo.events())
    answer = requests.post(echo.predictions("echo") + "?text=my+secret", json={"text": "my secret"}, timeout=30)
    assert answer.status_code == 200
    echo.wait_for(lambda: len(echo.events()) > before, 10, "the access line")
    time.sleep(0.5)
    lines = echo.events()[before:]
    assert len(lines) == 1
    assert sorted(lines[0]) == ["logger", "message", "severity", "time"]
    assert (lines[0]["severity"], lines[0]["logger"]) == ("INFO", "ACCESS_LOG")
    assert '"POST /predictions/echo HTTP/1.1" 200 ' in lines[0]["message"]
    assert "secret" not in echo.log()
    assert "METRICS" not in echo.log()


def test_the_management_side_is_closed(echo: Server) -> None:
    answer = requests.post(f"{echo.management_url}/models?url=http://127.0.0.1:1/a.mar", timeout=10)
    assert answer.status_code == 405
    inference = requests.get(f"{echo.url}/ping", timeout=10)
    assert (inference.status_code, json.loads(inference.text)) == (200, {"status": "Healthy"})
    listening = {one.laddr for one in echo.java().net_connections("tcp") if one.status == psutil.CONN_LISTEN}
    everywhere = {address.port for address in listening if address.ip in ("0.0.0.0", "::")}
    assert everywhere == {echo.port}
