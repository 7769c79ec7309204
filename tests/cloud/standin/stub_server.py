"""A serving container that starts in a blink, for tests of the API's own rules: a script of the standard library.

It answers each instance with `{"version": $STUB_ANSWER, "instance": …, "parameters": …}` on AIP_PREDICT_ROUTE, and 200
on AIP_HEALTH_ROUTE. Variables make it worse:
- STUB_EXIT=STATUS: it ends at once;
- STUB_READY_AFTER_S=SECONDS: it says 503 on the health route before;
- STUB_REFUSE=TEXT: a request with an instance that is, or holds, this text is a 400;
- STUB_MOST=COUNT: a request with more instances is a 413, in the words of a server of ours;
- STUB_STATUS=STATUS: every prediction has this status.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STARTED = time.monotonic()


class Handler(BaseHTTPRequestHandler):
    """Answers as the module's title says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Tell the health."""
        if self.path != os.environ["AIP_HEALTH_ROUTE"]:
            self._answer(404, {"error": f"no route {self.path}"})
            return
        ready = time.monotonic() - STARTED >= float(os.environ.get("STUB_READY_AFTER_S", "0"))
        self._answer(200 if ready else 503, {"ready": ready})

    def do_POST(self) -> None:
        """Predict."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path != os.environ["AIP_PREDICT_ROUTE"]:
            self._answer(404, {"error": f"no route {self.path}"})
            return
        if not self.headers.get("Content-Type", "").startswith("application/json"):
            self._answer(200, {"bytes": len(body), "type": self.headers.get("Content-Type", "")})
            return
        if os.environ.get("STUB_STATUS"):
            self._answer(int(os.environ["STUB_STATUS"]), {"error": "as STUB_STATUS wants it"})
            return
        content = json.loads(body)
        if len(content["instances"]) > float(os.environ.get("STUB_MOST", "inf")):
            self._answer(413, {"error": "the request has 9 tokens, the limit is 1; send it in parts"})
            return
        refused = os.environ.get("STUB_REFUSE")
        for i, instance in enumerate(content["instances"]):
            if refused and refused in json.dumps(instance):
                self._answer(400, {"error": f"instances[{i}]: refused"})
                return
        version = os.environ.get("STUB_ANSWER", "stub")
        answers = [
            {"version": version, "instance": instance, "parameters": content.get("parameters")}
            for instance in content["instances"]
        ]
        self._answer(200, {"predictions": answers})

    def _answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Many requests at a time; open connections keep it from nothing."""

    daemon_threads = True
    request_queue_size = 128


if __name__ == "__main__":
    if os.environ.get("STUB_EXIT"):
        sys.exit(int(os.environ["STUB_EXIT"]))
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    Server(("127.0.0.1", int(os.environ["AIP_HTTP_PORT"])), Handler).serve_forever()
