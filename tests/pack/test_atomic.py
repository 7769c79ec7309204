"""The archive appears complete or not at all: after a failure, a signal or a full disk the old one is as it was."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from archiver.errors import PackError
from archiver.options import PackOptions
from archiver.workspace import workspace
from tests.models.tiny import TinyModels
from tests.pack.conftest import COMMAND, Edit, Packer, environment

OLD = b"the archive of last week"


def old_archive(store: Path) -> Path:
    store.mkdir(exist_ok=True)
    file = store / "tiny.mar"
    file.write_bytes(OLD)
    return file


def start(model: Path, store: Path, stage: str) -> subprocess.Popen[str]:
    """Start packing, and return when a folder of that name lies in its workspace beside the old archive."""
    arguments = ["pack", str(model), "--name", "tiny", "--model-store", str(store)]
    process = subprocess.Popen(
        [*COMMAND, *arguments], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not list(store.glob(f".tiny-*/{stage}")):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"packing ended early: {process.communicate()[1]}")
        time.sleep(0.02)
    return process


def test_a_late_failure_leaves_the_old_archive(broken: Edit, packer: Packer) -> None:
    model = broken(lambda folder: (folder / "model.safetensors").unlink())
    file = old_archive(packer.store)

    with pytest.raises(PackError):
        packer(model)

    assert [path.name for path in packer.store.iterdir()] == ["tiny.mar"]
    assert file.read_bytes() == OLD


def processes_at(folder: Path) -> list[str]:
    """Return the command lines of the processes that name a folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # ended meanwhile
            found += [line for line in [file.read_bytes().replace(b"\0", b" ").decode()] if str(folder) in line]
    return found


@pytest.mark.parametrize(
    ("number", "stage", "status"), [(signal.SIGTERM, "unpacked", 143), (signal.SIGINT, "staged", 130)]
)
def test_a_signal_leaves_the_old_archive_and_nothing_else(
    number: signal.Signals, stage: str, status: int, tiny_models: TinyModels, tmp_path: Path
) -> None:
    file = old_archive(tmp_path / "store")
    process = start(tiny_models("bert"), file.parent, stage)

    process.send_signal(number)
    _, errors = process.communicate(timeout=60)

    assert process.returncode == status
    assert "Traceback" not in errors
    assert processes_at(file.parent) == []
    assert [path.name for path in file.parent.iterdir()] == ["tiny.mar"]
    assert file.read_bytes() == OLD


def test_what_a_killed_process_left_is_removed_by_the_next(tiny_models: TinyModels, packer: Packer) -> None:
    file = old_archive(packer.store)
    process = start(tiny_models("bert"), file.parent, "staged")

    process.kill()
    process.communicate(timeout=60)

    assert file.read_bytes() == OLD
    assert len(list(file.parent.iterdir())) == 2
    packer(tiny_models("bert"))
    assert [path.name for path in file.parent.iterdir()] == ["tiny.mar"]
    assert file.read_bytes()[:2] == b"PK"


def test_the_folder_of_a_process_that_lives_is_left_alone(tmp_path: Path) -> None:
    with workspace(tmp_path, "tiny") as one, workspace(tmp_path, "tiny") as other:
        assert one != other
        assert one.is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of 80 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system can be mounted by root only")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_too_small_is_refused_before_any_work(
    minilm_dir: Path, small_disk: Path, tmp_path: Path
) -> None:
    file = old_archive(small_disk)

    with pytest.raises(PackError) as refusal:
        Packer(small_disk)(minilm_dir)

    assert str(refusal.value) == (
        f"{small_disk}: 84 MB free, packing needs 246 MB (the weights twice); "
        "make room or name another place with --model-store"
    )
    assert [path.name for path in small_disk.iterdir()] == ["tiny.mar"]
    assert file.read_bytes() == OLD


def test_a_disk_that_gets_full_meanwhile(minilm_dir: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archiver.pack.require_space", lambda output, weights_bytes: None)
    file = old_archive(small_disk)

    with pytest.raises(PackError) as refusal:
        Packer(small_disk)(minilm_dir, PackOptions(model=str(minilm_dir)))

    assert str(refusal.value) == (
        f"{small_disk}: no space left on the disk; nothing was changed, the unfinished archive is removed"
    )
    assert [path.name for path in small_disk.iterdir()] == ["tiny.mar"]
    assert file.read_bytes() == OLD


def test_a_disk_that_gets_full_while_weights_are_converted(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_models: TinyModels
) -> None:
    monkeypatch.setattr("archiver.pack.require_space", lambda output, weights_bytes: None)
    model = tmp_path / "model"
    shutil.copytree(tiny_models("bert"), model)
    state = load_file(model / "model.safetensors")
    (model / "model.safetensors").unlink()
    torch.save(state | {"not.read": torch.zeros(25_000_000)}, model / "pytorch_model.bin")

    with pytest.raises(PackError) as refusal:
        Packer(small_disk)(model)

    assert str(refusal.value) == (
        f"{small_disk}: no space left on the disk; nothing was changed, the unfinished archive is removed"
    )
    assert list(small_disk.iterdir()) == []


def test_a_disk_that_gets_full_while_the_graph_is_written(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_models: TinyModels
) -> None:
    """OpenVINO tells of that in words of its own, and no slower archive may come of it."""
    monkeypatch.setattr("archiver.pack.require_space", lambda output, weights_bytes: None)
    model = tmp_path / "model"
    shutil.copytree(tiny_models("bert"), model)
    state = load_file(model / "model.safetensors")
    state["embeddings.word_embeddings.weight"] = torch.zeros(350_000, 32)  # 45 MB
    save_file(state, model / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"vocab_size": 350_000}))

    with pytest.raises(PackError) as refusal:
        Packer(small_disk)(model)

    assert str(refusal.value) == (
        f"{small_disk}: no space left on the disk; nothing was changed, the unfinished archive is removed"
    )
    assert list(small_disk.iterdir()) == []


def test_a_place_that_cannot_be_written(tiny_models: TinyModels) -> None:
    with pytest.raises(PackError) as refusal:
        Packer(Path("/proc/store"))(tiny_models("bert"))

    assert str(refusal.value) == "/proc/store: No such file or directory"
