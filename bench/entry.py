"""A system with a model in it, ready to be started as often as a measurement needs."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.cache import cache_folder, digest, made_once
from bench.connection import Connection, request
from bench.corpora import Corpus
from bench.load import Load
from bench.model import Model
from bench.reference import LEAST_COSINE, Agreement, agreement
from bench.result import Contestant
from bench.server import Server
from bench.systems.system import Prepared, System, UnavailableError
from bench.venv import REQUIREMENTS, ToolError, run_tool

# A vector's number takes at least this in an answer: a digit and a comma, or 4 bytes in base64.
BYTES_A_NUMBER = 2
_CHECK_TIMEOUT_S = 60.0
_VERSIONS = """
import importlib.metadata, sys
for name in sys.argv[1:]:
    try:
        print(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        pass
"""


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
            UnavailableError: It cannot take part; the message says why.
        """
        try:
            python = system.python()
            if not system.keeps:
                made = folder / system.name
                made.mkdir()
                system.prepare(Prepared(model, python, made))
            else:
                made = made_once(
                    cache_folder() / "prepared" / f"{system.name}-{_key(system, model)}",
                    lambda empty: system.prepare(Prepared(model, python, empty)),
                )
        except ToolError as err:
            raise UnavailableError(str(err)) from err
        return cls(system, Prepared(model, python, made))

    def server(self, log: Path, cores: Sequence[int] | None = None) -> Server:
        """A server of it, not yet started.

        Args:
            log: Where what it writes goes.
            cores: The cores that it may run on; None for all.
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

    def contestant(self, server: Server, texts: Sequence[str], expected: Sequence[Sequence[float]]) -> Contestant:
        """Ask for some vectors and compare them with the right ones.

        Raises:
            LoadError, OSError, ValueError, KeyError, TypeError: The answer cannot be had or read.
            UnavailableError: The vectors are others, and no reason for that is known.
        """
        with Connection(server.port, _CHECK_TIMEOUT_S) as connection:
            found = agreement(self.system.vectors(connection.exchange(self.request(texts))), expected)
        problem = ""
        if found.mean < LEAST_COSINE:
            problem = f"mean cosine {found.mean:.3f} to sentence-transformers"
            if not self.system.drift:
                raise UnavailableError(problem)
            problem += f": {self.system.drift}"
        return self._told(problem, found)

    def _told(self, problem: str, found: Agreement) -> Contestant:
        listed = run_tool([self.prepared.python, "-c", _VERSIONS, *self.system.packages])
        versions = dict(line.split(" ", 1) for line in listed.splitlines())
        names = (self.prepared.model.name, self.system.name, self.system.title)
        return Contestant(*names, problem, found.mean, found.least, versions)


def _key(system: System, model: Model) -> str:
    """Changes with the pins, the code that prepares, and the model."""
    pins = (REQUIREMENTS / f"{system.requirements}.txt").read_bytes() if system.requirements else b""
    return digest(pins, inspect.getsource(inspect.getmodule(type(system)) or type(system)), str(model.folder))
