"""How an image is run on this machine, without any engine: its entrypoint as a process."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HOME = "/home/model-server"
STUB = Path(__file__).resolve().with_name("stub_server.py")
STUB_HOME = STUB.with_name("stub_home")


@dataclass(frozen=True)
class Image:
    """What stands for an image.

    Attributes:
        command: Its ENTRYPOINT.
        arguments: Its CMD.
        home: The folder that stands for /home/model-server, in commands and probes alike, and is its WORKDIR.
        python: What stands for `python`.
        environment: Its ENV.
        port_variables: Variables that get a free port each: containers on one machine share its ports.
    """

    command: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    home: Path = ROOT
    python: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict)
    port_variables: tuple[str, ...] = ()

    def here(self, command: list[str]) -> list[str]:
        """Return a command of the image's as one of this machine's."""
        moved = [
            str(self.home) + word.removeprefix(HOME) if word == HOME or word.startswith(f"{HOME}/") else word
            for word in command
        ]
        return [self.python if moved[0] == "python" else moved[0], *moved[1:]]


def marvec_image(store: Path, environment: Mapping[str, str] | None = None) -> Image:
    """Return what stands for an image of `marvec image build`.

    Args:
        store: What lies in its model store; an empty folder for one of `--no-model`.
        environment: More ENV, for instance to keep a test's server small.
    """
    return Image(
        # As in docker/Dockerfile; the image's store is its config.properties' own, so here it must be named.
        command=("python", f"{HOME}/serving/launch.py", "--model-store", str(store)),
        environment=environment or {},
        port_variables=("MARVEC_MANAGEMENT_PORT", "MARVEC_METRICS_PORT"),
    )


def stub_image(**environment: str) -> Image:
    """Return an image whose server is up at once; see stub_server.py for what its variables make of it."""
    return Image(command=("python", str(STUB)), home=STUB_HOME, environment=environment)
