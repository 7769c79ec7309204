"""The probe's verdicts, against a management API and a launcher's state that say what each test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from serving.ports import free_ports
from serving.ready import why_not_ready
from serving.state_socket import DRAINING, READY, STARTING, ServerState, tell_state


class Management(HTTPServer):
    """Answers as TorchServe's management API does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.worker_states = ["READY"]
        self.describe_status = 200
        self.asked: list[str] = []


class Answer(BaseHTTPRequestHandler):
    """One answer, with what the server's attributes say."""

    server: Management

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if "customized=true" in self.path:
            status = self.server.describe_status
        else:
            status = 200 if self.path == "/models/m/1.0" else 404
        workers = [{"status": state} for state in self.server.worker_states]
        queue = {"pendingRequests": 0}
        content = json.dumps([{"workers": workers, "jobQueueStatus": queue, "maxBatchDelay": 1}]).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def management() -> Iterator[Management]:
    with Management() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def verdict(
    management: Management,
    phase: str = READY,
    *,
    replied_s: float | None = None,
    busy_s: float | None = None,
    models: Sequence[tuple[str, str]] = (("m", "1.0"),),
) -> str | None:
    progress: Mapping[str, Mapping[str, float | None]] = {"m_1.0": {"replied_s": replied_s, "busy_s": busy_s}}
    (port,) = free_ports(1)
    state = ServerState(phase, management.server_port, list(models), progress)
    with tell_state(port, lambda: state):
        answer = why_not_ready({"AIP_HTTP_PORT": str(port)})
    return answer.replace(str(port), "PORT") if answer else None


def test_an_idle_worker_is_asked(management: Management) -> None:
    assert verdict(management) is None
    assert management.asked == ["/models/m/1.0", "/models/m/1.0?customized=true"]


def test_a_fresh_reply_is_proof_enough(management: Management) -> None:
    assert verdict(management, replied_s=4.9) is None
    assert management.asked == ["/models/m/1.0"]


def test_a_full_queue_is_no_death_while_batches_end(management: Management) -> None:
    management.describe_status = 503
    assert verdict(management, replied_s=70.0, busy_s=59.0) is None
    assert verdict(management, replied_s=80.0, busy_s=61.4) == "model m: its worker is stuck in one batch for 61 s"
    assert verdict(management) == "model m: its worker does not answer"


def test_a_handler_that_fails_is_not_ready(management: Management) -> None:
    management.describe_status = 500
    assert verdict(management, busy_s=1.0) == (
        "model m: its worker fails the describe call (/models/m/1.0?customized=true answered 500)"
    )


def test_no_ready_worker(management: Management) -> None:
    management.worker_states = ["UNLOADING"]
    assert verdict(management, replied_s=0.1) == "model m has no READY worker"
    management.worker_states = ["UNLOADING", "READY"]
    assert verdict(management, replied_s=0.1) is None


def test_every_model_counts(management: Management) -> None:
    models = [("m", "1.0"), ("n", "1.0")]
    assert verdict(management, models=models) == "model n: /models/n/1.0 answered 404"


@pytest.mark.parametrize("phase", [STARTING, DRAINING])
def test_only_the_ready_phase(management: Management, phase: str) -> None:
    assert verdict(management, phase) == f"the server on port PORT is {phase}"
    assert management.asked == []


def test_nobody_there() -> None:
    (port,) = free_ports(1)
    assert why_not_ready({"PORT": str(port)}) == f"no marvec server runs on port {port}"
