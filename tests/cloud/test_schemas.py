"""Schema files and folders in a real emulator of Cloud Storage, and what is said where it refuses."""

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
from vertex import schemas, storage
from vertex.errors import AbsentError, AccessError, UnavailableError
from vertex.setting_values import Task

TASK: Task = "classification"
FIRST = schemas.uris("gs://models/schemas", TASK).instance


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
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


def test_the_files_are_put_once(emulator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator)
    schemas.put("gs://models/schemas/", TASK)
    uris = schemas.uris("gs://models/schemas", TASK)
    first = listed(emulator, "models")
    assert sorted(first) == ["readme.txt", *(uri.removeprefix("gs://models/") for uri in uris)]
    for name, uri in zip(schemas.FILES, uris, strict=True):
        item = first[uri.removeprefix("gs://models/")]
        assert item["contentType"] == "application/yaml"
        content = requests.get(
            f"{emulator}/download/storage/v1/b/models/o/{item['name']}?alt=media", timeout=30
        ).content
        assert content == schemas.read(TASK, name)
    schemas.put("gs://models/schemas", TASK)
    again = listed(emulator, "models")
    assert [item["generation"] for item in again.values()] == [item["generation"] for item in first.values()]


def test_no_such_bucket(emulator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator)
    with pytest.raises(AbsentError) as caught:
        schemas.put("gs://nowhere/schemas", TASK)
    assert str(caught.value) == (
        f"{schemas.uris('gs://nowhere/schemas', TASK).instance}: no such bucket, or nothing of that name in it: check "
        "the name, or make the bucket (gcloud storage buckets create gs://nowhere)"
    )


def test_not_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(403) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        with pytest.raises(AccessError) as caught:
            schemas.put("gs://models/schemas", TASK)
    assert str(caught.value) == f"{FIRST}: not allowed: ask for roles/storage.objectUser on gs://models"


def test_a_login_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(401) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        with pytest.raises(AccessError) as caught:
            schemas.put("gs://models/schemas", TASK)
    assert str(caught.value) == (
        f"{FIRST}: not logged in to Google Cloud (Anonymous credentials cannot be refreshed.): gcloud auth "
        "application-default login"
    )


def test_a_server_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "RETRY_S", 0.5)
    with answering(503) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        with pytest.raises(UnavailableError) as caught:
            schemas.put("gs://models/schemas", TASK)
    assert str(caught.value) == f"{FIRST}: Cloud Storage does not answer (HTTP status 503): try again"


def test_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "RETRY_S", 0.5)
    (port,) = free_ports(1)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    with pytest.raises(UnavailableError, match=r"Cloud Storage does not answer \(.*refused.*\): try again$"):
        schemas.put("gs://models/schemas", TASK)


def test_not_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with pytest.raises(AccessError) as caught:
        schemas.put("gs://models/schemas", TASK)
    said = str(caught.value)
    assert said.startswith("gs://models: not logged in to Google Cloud (Your default credentials were not found.")
    assert said.endswith("): gcloud auth application-default login")


def test_a_folder_is_fetched_as_it_lies(emulator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator)
    file = tmp_path / "weights.bin"
    file.write_bytes(b"\0" * 3_000_000)
    storage.put_file(file, "gs://models/minilm/1_Pooling/weights.bin")
    storage.put(b"{}", "gs://models/minilm/config.json", "application/json")
    storage.put(b"", "gs://models/minilm/1_Pooling/", "text/plain")
    storage.put(b"", "gs://models/minilm-large/config.json", "application/json")
    folder = tmp_path / "fetched"
    folder.mkdir()
    assert sorted(storage.fetch_folder("gs://models/minilm/", folder)) == ["1_Pooling/weights.bin", "config.json"]
    assert (folder / "1_Pooling" / "weights.bin").read_bytes() == file.read_bytes()
    assert sorted(one.name for one in folder.iterdir()) == ["1_Pooling", "config.json"]
    with storage.opened("gs://models/minilm/1_Pooling/weights.bin") as content:
        content.seek(-2, 2)
        assert content.read() == b"\0\0"
    with pytest.raises(AbsentError, match=r"^gs://models/nothing: nothing is there$"):
        storage.fetch_folder("gs://models/nothing", folder)
    with pytest.raises(AbsentError), storage.opened("gs://models/nothing") as content:
        content.read()
