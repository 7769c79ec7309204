"""A system with a model in it, ready to be started as often as a measurement needs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.cache import cache_folder, digest, made_once
from bench.connection import request
from bench.corpora import Corpus
from bench.load import Load
from bench.model import Model
from bench.server import Server
from bench.systems.system import Prepared, System
from bench.venv import REQUIREMENTS

# A vector's number takes at least this in an answer: a digit and a comma, or more than that in base64.
BYTES_A_NUMBER = 2


@dataclass(frozen=True)
class Entry:
    """A system and what it has made of a model."""

    system: System
    prepared: Prepared

    @classmethod
    def make(cls, system: System, model: Model, folder: Path) -> Entry:
        """Prepare a model for a system.

        Args:
            system: Its environment is made if need be.
            model: What it shall serve.
            folder: For what is made anew in each run.

        Raises:
            UnavailableError: This machine cannot run it.
            ToolError: The environment, or what it needs of the model, could not be made.
        """
        python = system.python()
        if system.keeps:
            kept = cache_folder() / "prepared" / f"{system.name}-{_key(system, model)}"
            made = made_once(kept, lambda empty: system.prepare(Prepared(model, python, empty)))
        else:
            made = folder / system.name
            made.mkdir()
            system.prepare(Prepared(model, python, made))
        return cls(system, Prepared(model, python, made))

    def server(self, log: Path, cores: Sequence[int] | None = None) -> Server:
        """A server of it, not yet started.

        Args:
            log: Where what it writes goes.
            cores: The cores that it may run on; None for all.

        Raises:
            UnavailableError: This machine cannot run it.
        """
        return Server(self.system.launch(self.prepared), self.request(["ready?"]), log, cores)

    def request(self, texts: Sequence[str]) -> bytes:
        """The vectors of some texts, asked of this system."""
        return request(self.system.path, self.system.body(texts))

    def requests(self, corpus: Corpus, load: Load) -> list[bytes]:
        """A corpus, asked of this system."""
        return [self.request(batch) for batch in load.batches(corpus)]

    def least_bytes(self, load: Load) -> int:
        """What an answer to one request of a load must have at least."""
        return load.texts * self.prepared.model.dimension * BYTES_A_NUMBER


def _key(system: System, model: Model) -> str:
    """Changes with the pins, the code that prepares, and the model."""
    pins = (REQUIREMENTS / f"{system.requirements}.txt").read_bytes() if system.requirements else b""
    return digest(pins, inspect.getsource(sys.modules[type(system).__module__]), str(model.folder))
