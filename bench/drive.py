"""Puts a server under a load for a few seconds and writes down when each answer came."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench.connection import Connection, LoadError
from bench.load import Load


@dataclass(frozen=True)
class Window:
    """How long to look.

    Attributes:
        warmup_s: Sent before the clock starts; at least one request a client.
        seconds: No request is begun after that; those under way are waited for and counted.
        answer_timeout_s: How long one answer may take.
        most_requests: No client sends more than these.
    """

    warmup_s: float = 1.0
    seconds: float = 6.0
    answer_timeout_s: float = 120.0
    most_requests: int = 20_000


@dataclass(frozen=True)
class Driven:
    """What came of it.

    Attributes:
        latencies_s: From a request's first byte out to its answer's last byte in.
        elapsed_s: From the first request to the last answer.
        client_cpu_s: What the load itself took of the cores in that time.
    """

    latencies_s: list[float]
    elapsed_s: float
    client_cpu_s: float


class _Clients:
    """The state that the clients of one load share."""

    def __init__(self, requests: Sequence[bytes], clients: int, window: Window) -> None:
        self.requests = requests
        self.window = window
        # One list for all: a client takes what is next, so the order of texts does not depend on the clients' speed.
        self.next = itertools.count()
        self.barrier = threading.Barrier(clients, action=self._start)
        self.started_s = 0.0
        self.started_cpu_s = 0.0

    def _start(self) -> None:
        self.next = itertools.count()
        self.started_cpu_s = time.process_time()
        self.started_s = time.perf_counter()

    def run(self, port: int, least_bytes: int) -> tuple[list[float], float]:
        """One client's life: warm up, wait for the others, then ask until the time is over."""
        try:
            with Connection(port, self.window.answer_timeout_s) as connection:
                until_s = time.perf_counter() + self.window.warmup_s
                self._ask(connection, least_bytes)
                while time.perf_counter() < until_s:
                    self._ask(connection, least_bytes)
            self.barrier.wait(self.window.answer_timeout_s)
            # A new connection: while this one waited for the others, the server may have closed the old one as idle.
            with Connection(port, self.window.answer_timeout_s) as connection:
                until_s = self.started_s + self.window.seconds
                latencies_s: list[float] = []
                while (began_s := time.perf_counter()) < until_s and len(latencies_s) < self.window.most_requests:
                    self._ask(connection, least_bytes)
                    latencies_s.append(time.perf_counter() - began_s)
                return latencies_s, time.perf_counter()
        except BaseException:
            self.barrier.abort()  # the others would wait for this one
            raise

    def _ask(self, connection: Connection, least_bytes: int) -> None:
        answer = connection.exchange(self.requests[next(self.next) % len(self.requests)])
        if len(answer) < least_bytes:
            raise LoadError(f"an answer of {len(answer)} bytes, expected at least {least_bytes}")


def drive(port: int, requests: Sequence[bytes], load: Load, least_bytes: int, window: Window) -> Driven:
    """Run a load against a server.

    Args:
        port: Where it listens.
        requests: What to send, over and over in this order.
        load: How many clients; the texts of a request are in `requests` already.
        least_bytes: What an answer must have at least. It is not parsed: that would cost cores that the server needs.
        window: How long.

    Returns:
        Latencies and times.

    Raises:
        LoadError: A request was refused, not answered in time, or answered with too little.
    """
    clients = _Clients(requests, load.clients, window)
    with ThreadPoolExecutor(load.clients) as pool:
        futures = [pool.submit(clients.run, port, least_bytes) for _ in range(load.clients)]
    client_cpu_s = time.process_time() - clients.started_cpu_s
    errors = [error for future in futures if (error := future.exception()) is not None]
    # A broken barrier only says that another client has failed.
    for error in sorted(errors, key=lambda one: isinstance(one, threading.BrokenBarrierError)):
        raise LoadError(str(error) or type(error).__name__) from error
    results = [future.result() for future in futures]
    return Driven(
        latencies_s=[latency for latencies, _ in results for latency in latencies],
        elapsed_s=max(ended_s for _, ended_s in results) - clients.started_s,
        client_cpu_s=client_cpu_s,
    )
