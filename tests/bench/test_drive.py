"""The load generator, on a real server."""

from __future__ import annotations

import pytest

from bench.connection import Connection, LoadError, request
from bench.drive import Window, drive
from bench.load import Load
from tests.bench.conftest import MakeServer

WINDOW = Window(warmup_s=0.05, seconds=0.2, answer_timeout_s=10.0)
REQUESTS = [request("/vectors", body) for body in (b"10", b"200000", b"30")]


@pytest.mark.parametrize("clients", [1, 4])
def test_every_client_asks_until_the_time_is_over(http_server: MakeServer, clients: int) -> None:
    with http_server("ok") as server:
        driven = drive(server.port, REQUESTS, Load(clients, 1), 10, WINDOW)
    assert len(driven.latencies_s) >= clients
    assert driven.elapsed_s >= WINDOW.seconds
    assert all(0 < latency_s < driven.elapsed_s for latency_s in driven.latencies_s)
    assert driven.client_cpu_s > 0


def test_no_client_sends_more_than_it_may(http_server: MakeServer) -> None:
    with http_server("ok") as server:
        driven = drive(server.port, REQUESTS, Load(2, 1), 10, Window(0.0, 60.0, 10.0, most_requests=3))
    assert len(driven.latencies_s) == 6


def test_an_answer_may_come_in_many_pieces(http_server: MakeServer) -> None:
    with http_server("ok") as server, Connection(server.port, 10.0) as connection:
        assert [len(connection.exchange(one)) for one in REQUESTS] == [10, 200_000, 30]


@pytest.mark.parametrize(
    ("behaviour", "least_bytes", "message"),
    [("refuse", 10, "status 500: no such luck"), ("ok", 11, "an answer of 10 bytes, expected at least 11")],
)
def test_a_wrong_answer_ends_the_load(http_server: MakeServer, behaviour: str, least_bytes: int, message: str) -> None:
    with http_server(behaviour) as server, pytest.raises(LoadError) as raised:
        drive(server.port, REQUESTS, Load(2, 1), least_bytes, WINDOW)
    assert str(raised.value) == message


def test_a_server_that_is_gone_ends_the_load(http_server: MakeServer) -> None:
    with http_server("ok") as server:
        pass
    with pytest.raises(LoadError, match=r"^\[Errno 111\] Connection refused$"):
        drive(server.port, REQUESTS, Load(2, 1), 10, WINDOW)
