"""Calls for storage.googleapis.com, forwarded to the emulator of Cloud Storage."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler

import requests

TIMEOUT_S = 120
GOOGLE = "https://storage.googleapis.com"
# What belongs to a connection, or is told anew.
_OWN = (
    "host",
    "connection",
    "transfer-encoding",
    "content-length",
    "content-encoding",
    "accept-encoding",
    "date",
    "server",
)


def forward(handler: BaseHTTPRequestHandler, verb: str, body: bytes, address: str) -> None:
    """Ask the emulator, and hand its answer on; addresses of its own become Google's.

    Args:
        handler: The connection.
        verb: Such as GET.
        body: The request's.
        address: The emulator's.
    """
    headers = {name: value for name, value in handler.headers.items() if name.lower() not in _OWN}
    answer = requests.request(
        verb,
        f"{address}{handler.path}",
        data=body or None,
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=TIMEOUT_S,
        proxies={"http": "", "https": ""},
        allow_redirects=False,
    )
    handler.send_response(answer.status_code)
    for name, value in answer.headers.items():
        if name.lower() not in _OWN:
            handler.send_header(name, value.replace(address, GOOGLE))
    handler.send_header("Content-Length", str(len(answer.content)))
    handler.end_headers()
    handler.wfile.write(answer.content)
