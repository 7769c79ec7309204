"""A local server that answers as a model hub does, and refuses what the real one would refuse.

Model info, file tree, and files by commit: HEAD tells ETag, size and commit; weights are a redirect to a storage
address that serves ranges. A private or gated repository wants a token, with the hub's own error codes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

TOKEN = "hf_good"


@dataclass
class Repo:
    """A repository at one commit.

    Attributes:
        files: Path -> content.
        commit: 40 hexadecimal digits.
        revisions: Other names of that commit.
        gated: Whether files, but not their names, want a token.
    """

    files: Mapping[str, bytes]
    commit: str = "c0ffee" + "0" * 34
    revisions: tuple[str, ...] = ("main",)
    gated: bool = False


@dataclass
class Hub:
    """The server's repositories and what it was asked.

    Attributes:
        repos: Id -> repository.
        requests: (method, path) in order.
        break_off_once: Paths of which the first download ends half way.
        ranges: The Range headers of downloads.
        port: Where it listens on 127.0.0.1.
        storage_port: Where large files lie: like the real hub's, another address, which knows no commits.
    """

    repos: dict[str, Repo]
    requests: list[tuple[str, str]] = field(default_factory=list)
    break_off_once: set[str] = field(default_factory=set)
    ranges: list[str] = field(default_factory=list)
    port: int = 0
    storage_port: int = 0

    @property
    def url(self) -> str:
        """What HF_ENDPOINT is set to."""
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serve(repos: dict[str, Repo]) -> Iterator[Hub]:
    """Serve repositories on a free port while the block runs."""
    hub = Hub(repos)

    class Handler(_Handler):
        pass

    Handler.hub = hub
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
    hub.port, hub.storage_port = (server.server_address[1] for server in servers)
    threads = [threading.Thread(target=server.serve_forever, daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append((self.command, path))
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"] and len(parts) >= 6 and parts[4] in ("revision", "tree"):
            self._api("/".join(parts[2:4]), parts[4], parts[5])
        elif len(parts) >= 5 and parts[2] == "resolve":
            self._file("/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        elif len(parts) >= 5 and parts[0] == "cdn":
            self._storage("/".join(parts[1:3]), "/".join(parts[4:]))
        else:
            self._refuse(404, "", "Not found")

    def _api(self, name: str, kind: str, revision: str) -> None:
        repo = self._repo(name, revision)
        if repo is None:
            return
        if kind == "tree":
            listed = [_entry(path, content) for path, content in repo.files.items()]
            self._json(listed)
            return
        siblings = [{"rfilename": path} for path in repo.files]
        info = {"id": name, "modelId": name, "sha": repo.commit, "siblings": siblings, "private": False}
        self._json(info | {"gated": "auto" if repo.gated else False, "tags": [], "downloads": 0, "likes": 0})

    def _file(self, name: str, revision: str, path: str) -> None:
        repo = self._repo(name, revision)
        if repo is None:
            return
        if repo.gated and not self._authorized():
            self._refuse(401, "GatedRepo", f"Access to model {name} is restricted.")
            return
        content = repo.files.get(path)
        if content is None:
            self._refuse(404, "EntryNotFound", "Entry not found")
            return
        headers = {"X-Repo-Commit": repo.commit, "Accept-Ranges": "bytes"}
        if _is_large(path):
            location = f"http://127.0.0.1:{self.hub.storage_port}/cdn/{name}/storage/{path}"
            digest = sha256(content).hexdigest()
            headers |= {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{digest}"', "Location": location}
            self._send(302, b"", headers)
        else:
            self._send(200, content, headers | {"ETag": f'"{_blob_id(content)}"'})

    def _storage(self, name: str, path: str) -> None:
        content = self.hub.repos[name].files[path]
        start = 0
        wanted = self.headers.get("Range")
        if wanted is not None:
            self.hub.ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").split("-")[0])
        headers = {"ETag": f'"{sha256(content).hexdigest()}"', "Accept-Ranges": "bytes"}
        if wanted is not None:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._send(206 if wanted else 200, content[start:], headers, path)

    def _repo(self, name: str, revision: str) -> Repo | None:
        repo = self.hub.repos.get(name)
        if repo is None:
            self._refuse(401 if not self._authorized() else 404, "RepoNotFound", "Repository not found")
        elif revision not in (repo.commit, *repo.revisions):
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        else:
            return repo
        return None

    def _authorized(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _json(self, content: object) -> None:
        self._send(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _refuse(self, status: int, code: str, message: str) -> None:
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self._send(status, json.dumps({"error": message}).encode(), headers)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str], path: str = "") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if path in self.hub.break_off_once:
            self.hub.break_off_once.discard(path)
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        self.wfile.write(body)


def _is_large(path: str) -> bool:
    return path.endswith((".safetensors", ".bin", ".onnx", ".h5", ".msgpack"))


def _entry(path: str, content: bytes) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": path, "size": len(content), "oid": _blob_id(content)}
    if _is_large(path):
        entry["lfs"] = {"oid": sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return entry


def _blob_id(content: bytes) -> str:
    return sha1(b"blob %d\0" % len(content) + content).hexdigest()
