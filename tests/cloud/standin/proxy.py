"""An HTTP proxy that leads Google's hosts to the stand-in, and nowhere else: a client needs no other setting."""

from __future__ import annotations

import contextlib
import re
import select
import socket
from http.server import BaseHTTPRequestHandler
from threading import Lock

from tests.cloud.standin.listening import Listener

ALLOWED = re.compile(
    r"([a-z0-9-]+-)?aiplatform\.googleapis\.com|[a-z0-9-]+-prediction-aiplatform\.googleapis\.com"
    r"|[a-z0-9-]+\.[a-z0-9-]+\.prediction\.vertexai\.goog|storage\.googleapis\.com|oauth2\.googleapis\.com"
)
_PIECE = 65536


class Proxy:
    """One proxy.

    Args:
        target: The port that everything is led to.

    Attributes:
        refused: The hosts that somebody wanted and did not get.
    """

    def __init__(self, target: int) -> None:
        self.refused: list[str] = []
        lock = Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_CONNECT(self) -> None:
                host, _, port = self.path.rpartition(":")
                self.close_connection = True
                if not ALLOWED.fullmatch(host) or port != "443":
                    with lock:
                        proxy.refused.append(self.path)
                    self.send_error(403, f"{self.path} is not one of the stand-in's hosts")
                    return
                with socket.create_connection(("127.0.0.1", target)) as other:
                    other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    self.wfile.flush()
                    _join(self.connection, other)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._listener = Listener(Handler)
        self._listener.start()

    @property
    def url(self) -> str:
        """The value for HTTPS_PROXY or grpc_proxy."""
        return f"http://127.0.0.1:{self._listener.port}"

    def close(self) -> None:
        """Stop."""
        self._listener.close()


def _join(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until an end closes."""
    pair = {one: other, other: one}
    with contextlib.suppress(OSError):
        while True:
            for ready in select.select(list(pair), [], [])[0]:
                # Without it, a client with Nagle's algorithm waits 40 ms for each request's second packet.
                with contextlib.suppress(OSError):
                    ready.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                piece = ready.recv(_PIECE)
                if not piece:
                    return
                pair[ready].sendall(piece)
