"""One image for all models: archives from Cloud Storage (a real emulator), and how a container says that it cannot."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.ports import free_ports
from tests.image.container import Container
from tests.image.machine import Machine
from tests.server.storage import cloud_storage

READ_ONLY = ("--read-only", "--network", "host")


@pytest.fixture(scope="module")
def storage(minilm_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a bucket with minilm.mar, and one with the first half of it."""
    folder = tmp_path_factory.mktemp("buckets")
    (folder / "models" / "v1").mkdir(parents=True)
    shutil.copyfile(minilm_store / "minilm.mar", folder / "models" / "v1" / "minilm.mar")
    (folder / "broken").mkdir()
    whole = (minilm_store / "minilm.mar").read_bytes()
    (folder / "broken" / "minilm.mar").write_bytes(whole[: len(whole) // 2])
    with cloud_storage(folder) as address:
        yield address


def options(storage: str, uri: str, port: int) -> tuple[str, ...]:
    """Return the options of a container that reaches the emulator and has ports of its own."""
    variables = {"STORAGE_EMULATOR_HOST": storage, "AIP_STORAGE_URI": uri, "AIP_HTTP_PORT": str(port)}
    return tuple(part for name, value in variables.items() for part in ("--env", f"{name}={value}"))


def test_an_archive_of_a_bucket(machine: Machine, server_image: str, storage: str) -> None:
    port = free_ports(1)[0]
    own = options(storage, "gs://models/v1", port)
    with Container(machine, server_image, *READ_ONLY, "--tmpfs", "/tmp", *own) as container:
        assert container.probe().returncode == 0
        assert len(container.ask("minilm", ["hello world"], port)[0]) == 384
        said = container.messages("INFO")
        assert said[0].startswith("fetching minilm.mar, ")
        assert said[1].endswith("its checksum is right")


def test_what_is_named_goes_before_what_is_baked_in(machine: Machine, minilm_image: str, storage: str) -> None:
    port = free_ports(1)[0]
    with Container(machine, minilm_image, "--network", "host", *options(storage, "gs://models/v1", port)) as container:
        assert container.messages()[0].startswith("fetching minilm.mar, ")


@pytest.mark.parametrize(
    ("uri", "tmpfs", "reason"),
    [
        ("gs://missing/v1", "/tmp", "gs://missing/v1: no such bucket, or the archive was replaced meanwhile: check it"),
        (
            "gs://models/v1",
            "/tmp:size=120m",
            "gs://models/v1 needs 0.18 GB below /tmp, half to fetch and half to unpack, ",
        ),
        ("gs://broken", "/tmp", "/minilm.mar is cut short or no zip (File is not a zip file): pack or copy it again"),
    ],
)
def test_one_line_and_exit_status_one(
    machine: Machine, server_image: str, storage: str, uri: str, tmpfs: str, reason: str
) -> None:
    own = options(storage, uri, free_ports(1)[0])
    with Container(machine, server_image, *READ_ONLY, "--tmpfs", tmpfs, *own, wait=False) as container:
        assert container.wait_exit() == 1
        assert reason in container.messages()[-1]
        assert container.messages("CRITICAL") == [container.messages()[-1]]


def test_a_mounted_store_with_too_little_room(machine: Machine, server_image: str, minilm_store: Path) -> None:
    mounted = ("--volume", f"{minilm_store}:/models:ro", "--env", "AIP_STORAGE_URI=/models", "--network", "none")
    with Container(machine, server_image, "--read-only", "--tmpfs", "/tmp:size=32m", *mounted, wait=False) as container:
        assert container.wait_exit() == 1
        assert container.messages() == ["no room to unpack /models/minilm.mar below /tmp: set TMPDIR to a larger place"]


def test_without_a_model_it_says_so(machine: Machine, server_image: str) -> None:
    with Container(machine, server_image, "--network", "none", wait=False) as container:
        assert container.wait_exit() == 1
        assert container.messages() == [
            "no .mar in /home/model-server/model_store: "
            "pack a model first (marvec pack MODEL --name NAME), or set AIP_STORAGE_URI"
        ]


def test_without_credentials_it_says_so(machine: Machine, server_image: str) -> None:
    variables = ("--env", "AIP_STORAGE_URI=gs://models/v1")
    with Container(machine, server_image, "--network", "none", *variables, wait=False) as container:
        assert container.wait_exit() == 1
        (line,) = container.messages()
        assert line.startswith("gs://models/v1: no usable Google credentials (")
        assert line.endswith("or mount a key and name it in GOOGLE_APPLICATION_CREDENTIALS")
