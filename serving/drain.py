"""Waits until every request that TorchServe has taken is answered and sent.

How it is known: TorchServe counts requests in, but no count of its own says how many it answered (its 2XX counters mix
in management calls). So three facts are taken together, and must hold for a while without a break:
1. no model's queue holds a request (management API);
2. no worker has a batch that it has not answered (worker_states.py);
3. no connection to the inference port has bytes left to send (/proc/net/tcp): TorchServe closes connections with a
   reset, which throws away what a slow client has not fetched yet.
The while covers a request that a worker thread has just taken from the queue and not yet handed over: it waits up to
maxBatchDelay for company.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from serving.archives import Archive
from serving.management import ManagementError, model_status
from serving.ports import Ports
from serving.worker_states import WorkerStates

SETTLE_S = 0.3
POLL_S = 0.05
TCP_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTEN = "0A"


def drain(
    archives: Sequence[Archive], ports: Ports, states: WorkerStates, timeout_s: float, give_up: Callable[[], bool]
) -> bool:
    """Waits, bounded.

    Args:
        archives: The served models.
        ports: Where to ask.
        states: What the workers do.
        timeout_s: At most so long.
        give_up: Tells that waiting has become useless: a second signal, or Java is gone.

    Returns:
        Whether nothing was left in flight.
    """
    deadline = time.monotonic() + timeout_s
    quiet_since: float | None = None
    while time.monotonic() < deadline and not give_up():
        try:
            statuses = [model_status(ports.management, one.name, one.version, 1.0) for one in archives]
        except ManagementError:
            quiet_since = None
        else:
            waiting = sum(status.pending_requests for status in statuses)
            settle_s = SETTLE_S + 2 * max(status.batch_delay_ms for status in statuses) / 1000
            if waiting or states.anyone_busy() or unsent_bytes(ports.inference, TCP_TABLES):
                quiet_since = None
            elif quiet_since is None:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since >= settle_s:
                return True
        time.sleep(POLL_S)
    return False


def unsent_bytes(port: int, tables: Sequence[Path]) -> int:
    """Bytes that wait in the send buffers of a port's connections.

    Args:
        port: The local port.
        tables: Linux's lists of TCP connections; where there are none nothing is known and 0 is said.

    Returns:
        Bytes not yet acknowledged by the peers.
    """
    total = 0
    for table in tables:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state, queues, *_ = line.split()
            if int(local.rpartition(":")[2], 16) == port and state != LISTEN:
                total += int(queues.partition(":")[0], 16)
    return total
