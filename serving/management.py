"""Questions to TorchServe's management API, with a time limit; launch.py, drain.py and ready.py ask them."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from urllib.parse import quote

READY = "READY"


@dataclass(frozen=True)
class ModelStatus:
    """What the management API says of one version of a model.

    Attributes:
        ready_workers: Workers that have loaded the model and are connected.
        pending_requests: Requests that no worker has taken yet.
        batch_delay_ms: How long a worker waits to fill a batch once it has taken a request.
    """

    ready_workers: int
    pending_requests: int
    batch_delay_ms: int


class ManagementError(Exception):
    """No answer, or not the expected one.

    Attributes:
        status: The HTTP status, None when there was no answer at all.
        timed_out: There was a connection, and no answer in time.
    """

    def __init__(self, message: str, status: int | None = None, *, timed_out: bool = False) -> None:
        """Keeps the status beside the message."""
        super().__init__(message)
        self.status = status
        self.timed_out = timed_out


def model_status(port: int, name: str, version: str, timeout_s: float) -> ModelStatus:
    """Asks for one version of a model; answered by Java itself, however busy the workers are.

    Args:
        port: The management port.
        name: The model.
        version: Its version.
        timeout_s: For the whole question.

    Returns:
        The status.

    Raises:
        ManagementError: No answer; status 404 when TorchServe does not have the model.
    """
    body = _get(port, f"/models/{quote(name)}/{quote(version)}", timeout_s)
    try:
        found = json.loads(body)[0]
        return ModelStatus(
            ready_workers=sum(worker["status"] == READY for worker in found["workers"]),
            pending_requests=int(found["jobQueueStatus"]["pendingRequests"]),
            batch_delay_ms=int(found["maxBatchDelay"]),
        )
    except (ValueError, KeyError, IndexError, TypeError) as err:
        raise ManagementError(f"model {name}: an answer of unknown form from the management API") from err


def ask_worker(port: int, name: str, version: str, timeout_s: float) -> None:
    """Sends a describe call through the queue to a worker's handler and back.

    Args:
        port: The management port.
        name: The model.
        version: Its version.
        timeout_s: For the whole question.

    Raises:
        ManagementError: No answer in time (`timed_out`), a full queue (503), or a handler that fails.
    """
    _get(port, f"/models/{quote(name)}/{quote(version)}?customized=true", timeout_s)


def _get(port: int, path: str, timeout_s: float) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
    except socket.timeout as err:
        raise ManagementError(f"no answer on management port {port} in {timeout_s:g} s", timed_out=True) from err
    except (OSError, http.client.HTTPException) as err:
        raise ManagementError(f"no answer on management port {port} ({err})") from err
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise ManagementError(f"{path} answered {answer.status}", answer.status)
    return body
