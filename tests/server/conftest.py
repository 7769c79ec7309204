"""Fixtures of the tests on a real TorchServe."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.server.archives import ECHO, build
from tests.server.running import Serve, Server


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers that end with the test."""
    with contextlib.ExitStack() as stack:

        def start(
            store: Path,
            *models: str,
            environment: Mapping[str, str] | None = None,
            arguments: tuple[str, ...] = (),
            wait: bool = True,
        ) -> Server:
            server = Server(store, *models, environment=environment, arguments=arguments)
            stack.callback(server.close)
            server.start()
            if wait:
                server.wait_ready()
            return server

        yield start


@pytest.fixture(scope="session")
def echo_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model store with echo.mar: one worker, up to four requests a batch."""
    store = tmp_path_factory.mktemp("echo") / "store"
    build(store, "echo", ECHO, batchSize=4)
    return store


@pytest.fixture(scope="module")
def echo(echo_store: Path) -> Iterator[Server]:
    """Serve echo.mar for the tests of one file that leave it as it was."""
    with Server(echo_store, "echo") as server:
        yield server
