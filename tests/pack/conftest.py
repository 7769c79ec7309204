"""Packing in this process, which saves the import of torch, and the command line in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from archiver.options import PackOptions
from archiver.pack import Packed, pack
from tests.models.tiny import TinyModels

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-c", "from marvec_cli.main import app; app(prog_name='marvec')")
Edit = Callable[[Callable[[Path], object]], Path]


@dataclass(frozen=True)
class Result:
    """A finished pack: what it returned, and the lines that it told."""

    packed: Packed
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Packer:
    """Packs into a model store of its own."""

    store: Path

    def __call__(self, model: Path, options: PackOptions | None = None, name: str = "tiny") -> Result:
        """Pack a directory as NAME; the other options are as given."""
        notes: list[str] = []
        options = options or PackOptions(model=str(model))
        packed = pack(replace(options, model=str(model), name=name, model_store=self.store), notes.append)
        return Result(packed, tuple(notes))


@pytest.fixture
def packer(tmp_path: Path) -> Packer:
    """Return a packer with an empty model store."""
    return Packer(tmp_path / "store")


@pytest.fixture
def broken(tiny_models: TinyModels, tmp_path: Path) -> Edit:
    """Return a maker of copies of a plain tiny BERT, changed by a function."""

    def make(change: Callable[[Path], object]) -> Path:
        folder = tmp_path / "model"
        shutil.copytree(tiny_models("bert"), folder)
        change(folder)
        return folder

    return make


def environment(**variables: str) -> dict[str, str]:
    """Return the environment for a `marvec` process that finds this checkout."""
    paths = os.pathsep.join((str(ROOT / "handler"), str(ROOT)))
    return os.environ | {"PYTHONPATH": paths, "COLUMNS": "200", "NO_COLOR": "1"} | variables


def marvec(*arguments: str, timeout_s: float = 300, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@dataclass(frozen=True)
class PackedTwice:
    """The demo model, packed by the command line with --vertex-prebuilt.

    Attributes:
        done: The finished command.
        store: The model store.
        usual: minilm.mar, unpacked.
        vertex: model.mar, unpacked.
    """

    done: subprocess.CompletedProcess[str]
    store: Path
    usual: Path
    vertex: Path


@pytest.fixture(scope="session")
def twice(minilm_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> PackedTwice:
    folder = tmp_path_factory.mktemp("vertex")
    store = folder / "store"
    done = marvec("pack", str(minilm_dir), "--name", "minilm", "--vertex-prebuilt", "--model-store", str(store))
    if done.returncode != 0:
        pytest.fail(done.stderr)
    unpacked = []
    for file in (store / "minilm.mar", store / "minilm.vertex" / "model.mar"):
        unpacked.append(folder / file.stem)
        with zipfile.ZipFile(file) as archive:
            archive.extractall(unpacked[-1])
    return PackedTwice(done, store, *unpacked)
