"""Two servers for all tests of the contract: one with every small model, one with the multilingual model alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.contract.endpoint import Endpoint
    from tests.contract.oracle import Oracle
    from tests.models.tiny import TinyModels
    from tests.server.running import Server

MODELS = ("tiny", "strict", "poisoned", "minilm")


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, tiny_models: TinyModels, minilm_dir: Path) -> Path:
    """Return a model store with the archives of tests/contract/archives.py."""
    from tests.contract.archives import build_all

    folder = tmp_path_factory.mktemp("contract") / "store"
    build_all(folder, tiny_models, minilm_dir)
    return folder


@pytest.fixture(scope="session")
def server(store: Path) -> Iterator[Server]:
    from tests.server.running import Server

    with Server(store, *MODELS) as running:
        yield running


@pytest.fixture(scope="session")
def tiny(server: Server) -> Endpoint:
    from tests.contract.archives import BATCH_SIZE
    from tests.contract.endpoint import Endpoint

    return Endpoint(server, "tiny", BATCH_SIZE)


@pytest.fixture(scope="session")
def strict(server: Server) -> Endpoint:
    from tests.contract.archives import STRICT_BATCH_SIZE
    from tests.contract.endpoint import Endpoint

    return Endpoint(server, "strict", STRICT_BATCH_SIZE)


@pytest.fixture(scope="session")
def poisoned(server: Server) -> Endpoint:
    from tests.contract.archives import BATCH_SIZE
    from tests.contract.endpoint import Endpoint

    return Endpoint(server, "poisoned", BATCH_SIZE)


@pytest.fixture(scope="session")
def minilm(server: Server) -> Endpoint:
    from tests.contract.endpoint import Endpoint

    return Endpoint(server, "minilm", 16)


@pytest.fixture(scope="session")
def tiny_oracle(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    """Return what the vectors of tiny, strict and poisoned must be."""
    from tests.contract.oracle import Oracle

    return Oracle.load(store / "tiny.mar", tmp_path_factory.mktemp("tiny-oracle"))


@pytest.fixture(scope="session")
def minilm_oracle(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    from tests.contract.oracle import Oracle

    return Oracle.load(store / "minilm.mar", tmp_path_factory.mktemp("minilm-oracle"))


@pytest.fixture(scope="session")
def multilingual(tmp_path_factory: pytest.TempPathFactory, e5_dir: Path) -> Iterator[Endpoint]:
    """Serve multilingual-e5-small alone."""
    from tests.contract.archives import build
    from tests.contract.endpoint import Endpoint
    from tests.server.running import Server

    folder = tmp_path_factory.mktemp("multilingual") / "store"
    build(folder, "e5", e5_dir)
    with Server(folder, "e5") as running:
        yield Endpoint(running, "e5", 16)


@pytest.fixture(scope="session")
def first_workers(server: Server) -> dict[str, int]:
    """Return each model's worker as it was before the first request."""
    return _worker_ids(server)


@pytest.fixture(autouse=True)
def _workers_survive(server: Server, first_workers: dict[str, int]) -> Iterator[None]:
    """Require after each test that no worker was ended or replaced, whatever was sent to it."""
    yield
    assert _worker_ids(server) == first_workers


def _worker_ids(server: Server) -> dict[str, int]:
    from tests.contract.endpoint import Endpoint

    return {name: Endpoint(server, name, 1).worker().pid for name in MODELS}
