"""What the benchmark needs to know of a contestant."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.model import Model
from bench.server import Launch
from bench.venv import python_of

REPOSITORY = Path(__file__).resolve().parent.parent.parent


class UnavailableError(Exception):
    """A system cannot take part here; the message says why."""


@dataclass(frozen=True)
class Prepared:
    """A model, made ready for a system.

    Attributes:
        model: What is served.
        python: The interpreter that serves it.
        folder: What `prepare` has made.
    """

    model: Model
    python: Path
    folder: Path


@dataclass(frozen=True)
class System(ABC):
    """A way to serve a model.

    Attributes:
        name: As on the command line.
        title: As in tables.
        requirements: A file of requirements/; None for the repository's own environment.
        path: Where it takes requests.
        packages: Whose versions a result tells.
        keeps: Whether what `prepare` makes depends on the pins alone, so that the next run may use it too.
        drift: Why its vectors are known to be others than sentence-transformers'; "" where they must agree.
    """

    name: str
    title: str
    requirements: str | None = None
    path: ClassVar[str]
    packages: ClassVar[Sequence[str]]
    keeps: ClassVar[bool] = False
    drift: ClassVar[str] = ""

    def python(self) -> Path:
        """The interpreter that serves; its environment is made on first use.

        Raises:
            ToolError: It could not be made.
        """
        return Path(sys.executable) if self.requirements is None else python_of(self.requirements)

    def prepare(self, prepared: Prepared) -> None:  # noqa: B027  # most systems serve the directory as it is
        """Make what the server needs beside the model's directory.

        Args:
            prepared: Its folder is empty, and to be filled.

        Raises:
            ToolError: It could not be made.
            UnavailableError: This machine cannot run it.
        """

    @abstractmethod
    def launch(self, prepared: Prepared) -> Launch:
        """How to start the server on a free port."""

    @abstractmethod
    def body(self, texts: Sequence[str]) -> bytes:
        """A request for the vectors of some texts."""

    @abstractmethod
    def vectors(self, answer: bytes) -> list[list[float]]:
        """The vectors in an answer, in the order of the texts."""

    def processes(self, cores: int) -> int:
        """How many copies of the model it holds in memory."""
        return 1
