"""A real server that costs nothing, for what is not about embeddings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.connection import request
from bench.server import Launch, Server
from serving.ports import free_ports

SCRIPT = Path(__file__).with_name("http_server.py")
MakeServer = Callable[[str], Server]


@pytest.fixture
def http_server(tmp_path: Path) -> MakeServer:
    """Return a maker of servers, not yet started, that behave as http_server.py says."""

    def make(behaviour: str) -> Server:
        (port,) = free_ports(1)
        launch = Launch([sys.executable, str(SCRIPT), str(port), behaviour], port, tmp_path)
        return Server(launch, request("/", b"1"), tmp_path / "log")

    return make
