"""An HTTP server on 127.0.0.1, with TLS or without, that leaves no open connection behind."""

from __future__ import annotations

import contextlib
import socket
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

_HANDSHAKE_S = 10.0
# What socketserver says that it hands over: a datagram would be a pair.
_Request = socket.socket | tuple[bytes, socket.socket]


class Listener(ThreadingHTTPServer):
    """One listening port.

    Args:
        handler: Answers.
        tls: For TLS; None for plain HTTP.

    Attributes:
        port: Where it listens.
    """

    daemon_threads = True
    request_queue_size = 128
    # Its threads are joined by `close`, after their connections are cut.
    block_on_close = False

    def __init__(self, handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.port = int(self.server_address[1])
        self._tls = tls
        self._handler = handler
        self._open: set[socket.socket] = set()
        self._lock = Lock()
        self._thread = Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and cut what is open."""
        self.shutdown()
        self.server_close()
        self._thread.join()
        with self._lock:
            left = list(self._open)
        for connection in left:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def finish_request(self, request: _Request, client_address: tuple[str, int]) -> None:
        """Answer one connection, in its own thread; the handshake is made here, where it holds up nobody."""
        if not isinstance(request, socket.socket):
            raise TypeError("a datagram")
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection: socket.socket = request
        try:
            if self._tls is not None:
                request.settimeout(_HANDSHAKE_S)
                connection = self._tls.wrap_socket(request, server_side=True)
                connection.settimeout(None)
            with self._lock:
                self._open.add(connection)
            self._handler(connection, client_address, self)
        except (OSError, ssl.SSLError):
            pass  # a client that went away, or that does not trust the authority
        finally:
            with self._lock:
                self._open.discard(connection)
            if connection is not request:
                connection.close()

    def handle_error(self, request: _Request, client_address: tuple[str, int]) -> None:
        """Say nothing of clients that went away."""
