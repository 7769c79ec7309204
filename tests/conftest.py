"""Fixtures and markers that every test folder shares.

The folder of a test is its marker (tests/unit -> unit), the folders run in the order of FOLDERS, cheap ones first.
Model folders are made or fetched once and kept under the user's cache; no test needs more than the package registry.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.imports import needs_extras, needs_python_310

if TYPE_CHECKING:
    from tests.models.tiny import TinyModels

TESTS = Path(__file__).resolve().parent
FOLDERS = ("unit", "contract", "pack", "parity", "sentiment", "server", "cloud", "bench", "install", "image")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out, where torch is missing or Python is 3.9, the test files that cannot run there."""
    if not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
        return None
    if importlib.util.find_spec("torch") is None and needs_extras(collection_path):
        return True
    if sys.version_info < (3, 10) and needs_python_310(collection_path):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its folder's name and with `torch` where it needs that, then order the folders."""
    for item in items:
        item.add_marker(_folder(item))
        if needs_extras(item.path):
            item.add_marker("torch")
    items.sort(key=lambda item: FOLDERS.index(_folder(item)))


def _folder(item: pytest.Item) -> str:
    folder = item.path.relative_to(TESTS).parts[0]
    if folder not in FOLDERS:
        raise pytest.UsageError(f"{item.path}: tests/{folder} is no known test folder; the known ones are {FOLDERS}")
    return folder


@pytest.fixture(scope="session")
def minilm_dir() -> Path:
    """Return the demo model's folder: all-MiniLM-L6-v2, a sentence-transformers directory."""
    from demo.models import fetch

    return fetch("minilm")


@pytest.fixture(scope="session")
def minilm_store(tmp_path_factory: pytest.TempPathFactory, minilm_dir: Path) -> Path:
    """Return a model store with minilm.mar, packed as a user does; the launcher chooses its workers."""
    store = tmp_path_factory.mktemp("minilm") / "store"
    marvec = str(Path(sys.executable).with_name("marvec"))
    subprocess.run([marvec, "pack", str(minilm_dir), "--name", "minilm", "--model-store", str(store)], check=True)
    return store


@pytest.fixture(scope="session")
def e5_dir() -> Path:
    """Return multilingual-e5-small with 4-bit weights, expanded to a float32 sentence-transformers directory."""
    from demo.models import fetch

    return fetch("e5")


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    """Return the maker of seeded tiny transformers; see tests/models/tiny.py for what can be asked of it."""
    from tests.models.tiny import TinyModels

    return TinyModels(tmp_path_factory.mktemp("tiny"))
