"""The REST wire: paths, queries and bodies as Google's own transports build them, to the core's messages and back."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.cloud.standin.core import Core
from tests.cloud.standin.errors import ApiError, Code, Cut, invalid
from tests.cloud.standin.messages import from_json, to_json
from tests.cloud.standin.methods import Method, Route, find
from tests.cloud.standin.names import Project
from tests.cloud.standin.predictions import Asked, RawAnswer
from tests.cloud.standin.storage_wire import forward

_PREDICTION = ("Predict", "RawPredict", "StreamRawPredict")
_SYSTEM = ("$alt", "alt", "prettyPrint")
_SHARED_HOST = re.compile(r"([a-z0-9-]+?)(-prediction)?-aiplatform\.googleapis\.com")
_DEDICATED_HOST = re.compile(r"([a-z0-9-]+)\.([a-z0-9-]+)-(\d+)\.prediction\.vertexai\.goog")


class RestHandler(BaseHTTPRequestHandler):
    """One connection; a subclass holds the class attributes.

    Attributes:
        core: Carries out.
        project: The one that there is.
        storage: Where calls for Cloud Storage are forwarded to.
        always_dedicated: Whether this port is a dedicated endpoint's, whatever the host is called.
    """

    protocol_version = "HTTP/1.1"
    core: Core
    project: Project
    storage: str | None = None
    always_dedicated = False

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PATCH(self) -> None:
        self._answer("PATCH")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the core keeps a log of calls."""

    def _answer(self, verb: str) -> None:
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        body = self._body()
        host = self.headers.get("Host", "").split(":")[0]
        path = unquote(urlsplit(self.path).path)
        try:
            if host == "storage.googleapis.com" and self.storage is not None:
                forward(self, verb, body, self.storage)
            elif path == "/token" and verb == "POST":
                self._token()
            else:
                self._call(verb, host, path, body)
        except ApiError as err:
            self._send(err.code.http, json.dumps(err.body()).encode(), {"Content-Type": "application/json"})
        except Cut:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def _call(self, verb: str, host: str, path: str, body: bytes) -> None:
        if not re.fullmatch(r"Bearer \S+", self.headers.get("Authorization", "")):
            raise ApiError(
                Code.UNAUTHENTICATED,
                "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or "
                "other valid authentication credential.",
            )
        found = find(verb, path)
        if not found:
            raise ApiError(Code.NOT_FOUND, f"The stand-in knows no {verb} {path}")
        method, route, variables = found
        dedicated = self._check_host(host, method, next(iter(variables.values()), ""))
        asked = Asked(dedicated, len(body))
        if method.raw:
            content_type = self.headers.get("Content-Type", "")
            self._send_raw(self.core.raw(method, variables["endpoint"], body, content_type, "rest", asked))
            return
        message = from_json(self._content(route, variables, body), method.request)
        answer = to_json(self.core.call(method, message, "rest", asked))
        self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json; charset=UTF-8"})

    def _check_host(self, host: str, method: Method, name: str) -> bool:
        """Return whether a dedicated endpoint's own host was asked, and refuse what belongs to another host."""
        own, shared = _DEDICATED_HOST.fullmatch(host), _SHARED_HOST.fullmatch(host)
        if own or self.always_dedicated:
            if method.name not in _PREDICTION:
                raise ApiError(Code.NOT_FOUND, f"{method.name} is not on a dedicated endpoint's host")
            right = rf"projects/[^/]+/locations/{own[2]}/endpoints/{own[1]}" if own else ".*"
            if not re.fullmatch(right, name) or (own and own[3] != self.project.number):
                raise ApiError(Code.NOT_FOUND, f"{name} is not on {host}")
            return True
        location = re.search(r"/locations/([^/]+)", name)
        if shared and location and location[1] != shared[1]:
            raise invalid(f"The location ID {location[1]} doesn't match the endpoint {host}.")
        return False

    def _content(self, route: Route, variables: Mapping[str, str], body: bytes) -> dict[str, Any]:
        content: dict[str, Any] = {}
        if route.body is not None:
            try:
                parsed = json.loads(body or b"{}")
            except ValueError as err:
                raise invalid(f"Invalid JSON payload received. {err}") from err
            if not isinstance(parsed, dict):
                raise invalid("Invalid JSON payload received. Expected an object.")
            content = parsed if route.body == "*" else {route.body: parsed}
        elif body.strip() not in (b"", b"{}"):
            raise invalid("Invalid JSON payload received. This method takes no body.")
        for key, value in parse_qsl(urlsplit(self.path).query, keep_blank_values=True):
            if key not in _SYSTEM:
                _put(content, key, _of_query(key, value))
        for key, value in variables.items():
            _put(content, key, value)
        return content

    def _token(self) -> None:
        if self.core.trouble.refuse_tokens:
            refused = {"error": "invalid_grant", "error_description": "Invalid grant: account not found"}
            self._send(400, json.dumps(refused).encode(), {"Content-Type": "application/json"})
            return
        granted = {"access_token": "a-token-of-the-stand-in", "expires_in": 3600, "token_type": "Bearer"}
        self._send(200, json.dumps(granted).encode(), {"Content-Type": "application/json"})

    def _send_raw(self, answer: RawAnswer) -> None:
        self.send_response(answer.status)
        if answer.content_type:
            self.send_header("Content-Type", answer.content_type)
        for name, value in answer.headers().items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in answer.body:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()


def _put(content: dict[str, Any], key: str, value: object) -> None:
    """Set a field by its path, as in `model.name`."""
    *above, last = key.split(".")
    for step in above:
        content = content.setdefault(step, {})
    content[last] = [content[last], value] if last in content and last not in ("name", "parent") else value


def _of_query(key: str, value: str) -> str | bool:
    if value in ("true", "false"):
        return value == "true"
    if key in ("updateMask", "update_mask"):
        return re.sub(r"_([a-z])", lambda found: found[1].upper(), value)
    return value
