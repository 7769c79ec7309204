"""One kept-alive HTTP connection that costs as little as can be: the load shares its cores with the servers.

`http.client` parses an answer's head as e-mail, which takes longer than the rest of a request here.
"""

from __future__ import annotations

import socket
from types import TracebackType

_CHUNK = 1 << 18


class LoadError(Exception):
    """A server refused a request, or its answer is not one."""


class Connection:
    """A blocking connection to a port of this machine.

    Args:
        port: The server's.
        timeout_s: How long one answer may take.
    """

    def __init__(self, port: int, timeout_s: float) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def exchange(self, request: bytes) -> bytes:
        """Send a request and wait for its answer.

        Args:
            request: Head and body, as `request` makes it.

        Returns:
            The answer's body.

        Raises:
            LoadError: The status is not 200, or the answer does not tell its length.
            OSError: The connection broke, or the time is over.
        """
        self._socket.sendall(request)
        head, body = self._head()
        length = _length(head)
        while len(body) < length:
            body += self._receive()
        status = int(head.split(b" ", 2)[1])
        if status != 200:
            raise LoadError(f"status {status}: {body[:200].decode(errors='replace')}")
        return bytes(body)

    def _head(self) -> tuple[bytes, bytearray]:
        received = bytearray()
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._receive()
        return bytes(received[:end]), received[end + 4 :]

    def _receive(self) -> bytes:
        chunk = self._socket.recv(_CHUNK)
        if not chunk:
            raise LoadError("the server closed the connection")
        return chunk


def request(path: str, body: bytes) -> bytes:
    """A POST of JSON, ready to be sent."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    raise LoadError(f"an answer without a length: {head[:200].decode(errors='replace')}")
