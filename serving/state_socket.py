"""Tells the probe what the launcher knows: which models are served, and whether it is starting, ready or draining.

A socket instead of a state file: it ends with its process, so nothing can go stale. On Linux its name lives in the
network namespace, not on a disk, which also makes a second launcher on the same port fail at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field

from serving.errors import PortError

STARTING = "starting"
READY = "ready"
DRAINING = "draining"
STOPPING = "stopping"


@dataclass(frozen=True)
class ServerState:
    """What a launcher says of itself.

    Attributes:
        phase: STARTING, READY, DRAINING or STOPPING.
        management_port: Where its TorchServe can be asked.
        models: Name and version of each model it serves.
        progress: `WorkerStates.progress`.
    """

    phase: str
    management_port: int
    models: list[tuple[str, str]]
    progress: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


def address(port: int) -> str:
    """The socket's name for an inference port.

    Args:
        port: The inference port.

    Returns:
        An abstract name on Linux, a path elsewhere.
    """
    if platform.system() == "Linux":
        return f"\0marvec-{port}"
    return os.path.join(tempfile.gettempdir(), f"marvec-{port}.sock")


@contextlib.contextmanager
def tell_state(port: int, state: Callable[[], ServerState]) -> Iterator[None]:
    """Answers every connection with the state of that moment, until the block ends.

    Args:
        port: The inference port.
        state: Called for each connection, in another thread.

    Yields:
        Nothing.

    Raises:
        PortError: Another launcher holds this port.
    """
    name = address(port)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        if not name.startswith("\0"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
        try:
            listener.bind(name)
        except OSError as err:
            raise PortError(
                f"another marvec server starts or runs on port {port}: stop it, or set another port"
            ) from err
        listener.listen(16)
        threading.Thread(target=_answer, args=(listener, state), name="state-socket", daemon=True).start()
        try:
            yield
        finally:
            if not name.startswith("\0"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name)
            # Closing alone would leave the accepting thread, and with it the name, alive.
            listener.shutdown(socket.SHUT_RDWR)


def ask_state(port: int, timeout_s: float) -> ServerState:
    """Asks the launcher on a port.

    Args:
        port: The inference port.
        timeout_s: For connecting, and for each read.

    Returns:
        Its state.

    Raises:
        OSError: Nobody answers.
        ValueError: What answers is no launcher of this release.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        connection.connect(address(port))
        parts = []
        while True:
            part = connection.recv(1 << 16)
            if not part:
                break
            parts.append(part)
    try:
        told = json.loads(b"".join(parts))
        return ServerState(
            phase=str(told["phase"]),
            management_port=int(told["management_port"]),
            models=[(str(name), str(version)) for name, version in told["models"]],
            progress=told["progress"],
        )
    except (KeyError, TypeError, ValueError) as err:
        raise ValueError(f"the launcher on port {port} answers in an unknown form") from err


def _answer(listener: socket.socket, state: Callable[[], ServerState]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, contextlib.suppress(OSError):
            connection.settimeout(5)
            connection.sendall(json.dumps(asdict(state())).encode())
