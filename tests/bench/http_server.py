"""A script: a tiny HTTP server for the load generator's tests, `http_server.py PORT BEHAVIOUR`.

BEHAVIOUR: ok answers with as many bytes as the request's body says; big does so too and holds 40 MB; refuse says 500;
close says nothing; exit does not even start.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Reads a POST to its end and answers it on the same connection."""

    protocol_version = "HTTP/1.1"
    behaviour = "ok"

    def do_POST(self) -> None:
        """Answer as the behaviour says."""
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.behaviour == "close":
            self.close_connection = True
            return
        refused = self.behaviour == "refuse" and body != b"1"
        answer = b"no such luck" if refused else b"x" * int(body)
        self.send_response(500 if refused else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say what came in as the log's only lines."""
        sys.stdout.write(f"{format % arguments}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[2] == "exit":
        sys.exit("no memory\n\nfor this")
    Handler.behaviour = sys.argv[2]
    ballast = b"x" * (40_000_000 if sys.argv[2] == "big" else 0)
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
