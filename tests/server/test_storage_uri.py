"""AIP_STORAGE_URI: archives from a real emulator of Cloud Storage, through trouble, and refusals in one line."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.server.archives import ECHO, build
from tests.server.running import Server
from tests.server.storage import Trouble, cloud_storage, troubled

PADDING_BYTES = 20 << 20  # more than one part, so that several streams are at work


@pytest.fixture(scope="module")
def buckets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of buckets: one with two archives, one with a broken one, one with none."""
    folder = tmp_path_factory.mktemp("buckets")
    store = folder / "models" / "v1"
    build(store, "echo", ECHO, batchSize=4)
    build(store, "other", ECHO, batchSize=4)
    (store / "deeper").mkdir()
    shutil.copyfile(store / "echo.mar", store / "deeper" / "not-this.mar")
    (folder / "broken").mkdir()
    whole = (store / "echo.mar").read_bytes()
    (folder / "broken" / "echo.mar").write_bytes(whole[: len(whole) // 2])
    (folder / "large").mkdir()
    (folder / "large" / "echo.mar").write_bytes(b"\0" * PADDING_BYTES + whole)  # a zip may have anything before it
    (folder / "nothing").mkdir()
    (folder / "nothing" / "readme.txt").write_text("no archive here")
    return folder


@pytest.fixture(scope="module")
def storage(buckets: Path) -> Iterator[str]:
    """Serve the buckets."""
    with cloud_storage(buckets) as address:
        yield address


def launch(store: Path, address: str, uri: str, *models: str, **variables: str) -> Server:
    """Return a server that was started; the model store that it is given on the command line is empty."""
    store.mkdir(exist_ok=True)
    environment = {"STORAGE_EMULATOR_HOST": address, "AIP_STORAGE_URI": uri, **variables}
    server = Server(store, *models, environment=environment)
    server.start()
    return server


def reason(store: Path, address: str, uri: str, *models: str, **variables: str) -> str:
    """Return the last line of a server that must end with exit status 1 and leave nothing behind."""
    server = launch(store, address, uri, *models, **variables)
    try:
        assert server.wait_exit() == 1, server.log()
        assert server.leftovers() == []
        events = server.events()
        assert [event["severity"] for event in events if event["severity"] == "CRITICAL"] == ["CRITICAL"]
        assert events[-1]["severity"] == "CRITICAL"
        assert "Traceback" not in server.log()
        return events[-1]["message"]
    finally:
        server.close()


@pytest.mark.parametrize("uri", ["gs://models/v1", "gs://models/v1/"])
def test_every_archive_of_the_folder(tmp_path: Path, storage: str, uri: str) -> None:
    server = launch(tmp_path / "store", storage, uri)
    try:
        server.wait_ready()
        for model in ("echo", "other"):
            assert requests.post(server.predictions(model), json={"instances": [1]}, timeout=30).status_code == 200
        said = server.messages("INFO")
        assert said[0].startswith("fetching echo.mar, ")
        assert said[1].startswith("fetched echo.mar in ")
        assert said[1].endswith("its checksum is right")
        assert not list(server.tmp.rglob("*.mar")), "what was unpacked is removed"
        assert server.terminate() == 143
        assert server.leftovers() == []
    finally:
        server.close()


def test_only_what_is_named(tmp_path: Path, storage: str) -> None:
    server = launch(tmp_path / "store", storage, "gs://models/v1", "mine=echo.mar")
    try:
        server.wait_ready()
        assert requests.post(server.predictions("mine"), json={"instances": [1]}, timeout=30).status_code == 200
        assert not any("other.mar" in message for message in server.messages())
    finally:
        server.close()


def test_one_archive_under_two_names(tmp_path: Path, storage: str) -> None:
    server = launch(tmp_path / "store", storage, "gs://models/v1", "a=echo.mar", "b=echo.mar")
    try:
        server.wait_ready()
        for model in ("a", "b"):
            assert requests.post(server.predictions(model), json={"instances": [1]}, timeout=30).status_code == 200
    finally:
        server.close()


def test_a_mounted_folder_is_read_where_it_lies(tmp_path: Path, buckets: Path) -> None:
    server = launch(tmp_path / "store", "http://127.0.0.1:1", str(buckets / "models" / "v1"), "echo")
    try:
        server.wait_ready()
        assert (buckets / "models" / "v1" / "echo.mar").is_file()
    finally:
        server.close()


def test_several_parts_and_a_network_that_fails_now_and_then(tmp_path: Path, storage: str) -> None:
    trouble = Trouble(refuse=4)
    with troubled(storage, trouble) as address:
        server = launch(tmp_path / "store", address, "gs://large")
        try:
            server.wait_ready()
            assert len(trouble.seen) == 3 + 4
        finally:
            server.close()


def test_a_changed_byte_is_found(tmp_path: Path, storage: str) -> None:
    with troubled(storage, Trouble(corrupt=True)) as address:
        assert reason(tmp_path / "store", address, "gs://models/v1", "echo") == (
            "gs://models/v1: echo.mar arrived damaged (its CRC-32C is wrong): start again"
        )


def test_a_signal_while_fetching_ends_at_once(tmp_path: Path, storage: str) -> None:
    trouble = Trouble(hold_s=30)
    with troubled(storage, trouble) as address:
        server = launch(tmp_path / "store", address, "gs://models/v1")
        try:
            server.wait_for(lambda: bool(trouble.seen), 30, "a request")
            started = time.monotonic()
            assert server.terminate(signal.SIGTERM) == 143
            assert time.monotonic() - started < 5
            assert server.messages()[-1] == "SIGTERM before anything was started: ending"
            assert server.leftovers() == []
        finally:
            server.close()


def test_a_signal_while_listing_ends_at_once(tmp_path: Path, storage: str) -> None:
    trouble = Trouble(hold_listing_s=30)
    with troubled(storage, trouble) as address:
        server = launch(tmp_path / "store", address, "gs://models/v1")
        try:
            server.wait_for(lambda: bool(trouble.listings), 30, "a listing")
            started = time.monotonic()
            assert server.terminate(signal.SIGTERM) == 143
            assert time.monotonic() - started < 5
            assert server.messages() == ["SIGTERM before anything was started: ending"]
        finally:
            server.close()


def test_what_cannot_be_had_is_one_line(tmp_path: Path, storage: str) -> None:
    store = tmp_path / "store"
    assert reason(store, storage, "gs://missing/v1") == (
        "gs://missing/v1: no such bucket, or the archive was replaced meanwhile: check it"
    )
    assert reason(store, storage, "gs://nothing") == (
        "gs://nothing holds no .mar: copy one there, directly into that folder"
    )
    assert reason(store, storage, "gs://models/v1", "third") == (
        "gs://models/v1 holds no third.mar (it holds echo.mar, other.mar): copy it there, or name another"
    )
    assert reason(store, storage, "https://models/v1") == (
        "AIP_STORAGE_URI='https://models/v1': expected gs://BUCKET/FOLDER or an absolute path"
    )
    assert reason(store, storage, "/no/folder") == (
        "AIP_STORAGE_URI='/no/folder': there is no such folder: mount it there"
    )
    assert reason(store, storage, "gs:///v1") == "AIP_STORAGE_URI='gs:///v1': expected gs://BUCKET/FOLDER"
    broken = reason(store, storage, "gs://broken")
    assert "echo.mar is cut short or no zip" in broken


def test_what_is_not_allowed_names_the_role(tmp_path: Path, storage: str) -> None:
    with troubled(storage, Trouble(refuse=100, status=403)) as address:
        assert reason(tmp_path / "store", address, "gs://models/v1", "echo") == (
            "gs://models/v1: not allowed: give the service account roles/storage.objectViewer on the bucket"
        )
