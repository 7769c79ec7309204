"""Both sides of a model directory, made once for a session; a test that needs an odd directory copies a good one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from archiver.options import PackOptions
from tests.models import decoders, families
from tests.models.tiny import Kind, TinyModels
from tests.parity.exports import Exports
from tests.parity.sides import Sides, consult, pack

Change = Callable[[Path], object]
Odd = Callable[[Kind, Change], Sides]


class SidesMaker:
    """Makes both sides of directories below a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Keep what is staged and copied under an existing folder."""
        self._folder = folder
        self._exports = Exports(folder)
        self._made: dict[Path, Sides] = {}
        self._count = 0

    def __call__(self, directory: Path, options: PackOptions | None = None) -> Sides:
        """Pack a directory and load it with sentence-transformers; without options, once for the session."""
        if options is None and directory in self._made:
            return self._made[directory]
        ours = pack(directory, self._new("staged"), self._exports, options or PackOptions("-"))
        sides = Sides(ours, consult(directory))
        if options is None:
            self._made[directory] = sides
        return sides

    def changed(self, directory: Path, change: Change) -> Path:
        """Return a copy of a directory, changed by a function."""
        # The folder's name is the model's id, which may choose prompts: it stays.
        copy = self._new("copies") / directory.name
        shutil.copytree(directory, copy)
        change(copy)
        return copy

    def _new(self, name: str) -> Path:
        self._count += 1
        return self._folder / f"{name}-{self._count}"


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Compute in one thread: small inputs gain little by two, which on a busy machine wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def sides(tmp_path_factory: pytest.TempPathFactory) -> SidesMaker:
    """Return the maker of both sides."""
    return SidesMaker(tmp_path_factory.mktemp("parity"))


@pytest.fixture(scope="session")
def family_dirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of the families of tests/models/families.py by their kinds."""
    made = {family.kind: tmp_path_factory.mktemp(family.kind) / family.kind for family in families.FAMILIES}
    for family in families.FAMILIES:
        families.write(made[family.kind], family)
    return made


@pytest.fixture(scope="session")
def decoder_dirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of the decoders of tests/models/decoders.py by their names."""
    made = {decoder.name: tmp_path_factory.mktemp(decoder.name) / decoder.name for decoder in decoders.DECODERS}
    for decoder in decoders.DECODERS:
        decoders.write(made[decoder.name], decoder)
    return made


@pytest.fixture(scope="session")
def minilm(minilm_dir: Path, sides: SidesMaker) -> Sides:
    """Return both sides of the demo model: at most 256 tokens, mean, normalized."""
    return sides(minilm_dir)


@pytest.fixture(scope="session")
def e5(e5_dir: Path, sides: SidesMaker) -> Sides:
    """Return both sides of the multilingual model: a BERT with XLM-R's tokenizer, at most 512 tokens, mean."""
    return sides(e5_dir)


@pytest.fixture
def odd(tiny_models: TinyModels, sides: SidesMaker) -> Odd:
    """Return a maker of both sides of a changed tiny model: mean pooling, 64 tokens."""
    return lambda kind, change: sides(sides.changed(tiny_models(kind, pooling="mean"), change))
