"""The schema files in a real emulator of Cloud Storage, and what is said where they cannot be put there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import requests

from serving.ports import free_ports
from tests.server.storage import cloud_storage
from vertex import schemas
from vertex.errors import VertexError


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve one bucket that holds one object; returns the address."""
    folder = tmp_path_factory.mktemp("buckets")
    (folder / "models").mkdir()
    (folder / "models" / "readme.txt").write_text("so that there is a bucket")
    with cloud_storage(folder) as address:
        yield address


@contextmanager
def answering(status: int) -> Iterator[str]:
    """Run a server that answers every request with one status; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def listed(address: str, bucket: str) -> dict[str, dict[str, str]]:
    """Return the objects of a bucket, by name."""
    items = requests.get(f"{address}/storage/v1/b/{bucket}/o", timeout=30).json()["items"]
    return {item["name"]: item for item in items}


def test_the_files_are_put_once(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage)
    uris = schemas.put("gs://models/schemas/")
    assert uris == schemas.uris("gs://models/schemas")
    first = listed(storage, "models")
    assert sorted(first) == ["readme.txt", *(uri.removeprefix("gs://models/") for uri in uris)]
    for name, uri in zip(schemas.FILES, uris, strict=True):
        item = first[uri.removeprefix("gs://models/")]
        assert item["contentType"] == "application/yaml"
        content = requests.get(f"{storage}/download/storage/v1/b/models/o/{item['name']}?alt=media", timeout=30).content
        assert content == schemas.read(name)
    assert schemas.put("gs://models/schemas") == uris
    again = listed(storage, "models")
    assert [item["generation"] for item in again.values()] == [item["generation"] for item in first.values()]


def test_no_such_bucket(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage)
    with pytest.raises(VertexError) as caught:
        schemas.put("gs://nowhere/schemas")
    assert str(caught.value) == (
        "model.schema_folder gs://nowhere/schemas: there is no bucket nowhere: make it (gcloud storage buckets create "
        "gs://nowhere), or name another"
    )


def test_not_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(403) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        with pytest.raises(VertexError) as caught:
            schemas.put("gs://models/schemas")
    assert str(caught.value) == (
        "model.schema_folder gs://models/schemas: not allowed to write there: ask for roles/storage.objectUser on "
        "gs://models"
    )


def test_a_login_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(401) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        with pytest.raises(
            VertexError, match=r"not logged in to Google Cloud \(.*\): gcloud auth application-default login"
        ):
            schemas.put("gs://models/schemas")


def test_a_server_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "_RETRY_S", 0.5)
    with answering(503) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        with pytest.raises(VertexError, match=r"Cloud Storage took no schema files \(HTTP status 503\): try again$"):
            schemas.put("gs://models/schemas")


def test_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "_RETRY_S", 0.5)
    (port,) = free_ports(1)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    with pytest.raises(VertexError, match=r"Cloud Storage took no schema files \(.*refused.*\): try again$"):
        schemas.put("gs://models/schemas")


def test_not_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with pytest.raises(VertexError) as caught:
        schemas.put("gs://models/schemas")
    said = str(caught.value)
    assert said.startswith("model.schema_folder gs://models/schemas: not logged in to Google Cloud (Your default cred")
    assert said.endswith("): gcloud auth application-default login")
