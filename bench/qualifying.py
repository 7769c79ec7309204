"""Who can take part: each system is made ready, started once, and asked for vectors that are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import corpora
from bench.connection import Connection, LoadError
from bench.display import Display
from bench.entry import Entry
from bench.model import Model
from bench.reference import LEAST_COSINE, agreement, reference
from bench.result import Contestant
from bench.server import ServerError
from bench.systems.system import System, UnavailableError
from bench.venv import ToolError, run_tool

TEXTS = 16
_ANSWER_TIMEOUT_S = 60.0
_VERSIONS = """
import importlib.metadata, sys
for name in sys.argv[1:]:
    try:
        print(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        pass
"""


@dataclass(frozen=True)
class Field:
    """The systems for one model.

    Attributes:
        entries: Those that can take part.
        contestants: All that were asked to, with what is wrong with the others.
    """

    entries: list[Entry]
    contestants: list[Contestant]


def qualify(systems: Sequence[System], model: Model, folder: Path, display: Display) -> Field:
    """Make systems ready for a model, and ask each for the vectors of the first mixed texts.

    Args:
        systems: Who was asked to take part.
        model: What they serve.
        folder: An empty folder for archives and logs.
        display: Where progress is shown.
    """
    texts = corpora.build("mixed", model.language, model.tokenizer).texts[:TEXTS]
    display.say(f"{model.name}: {len(systems)} systems; the first time, their environments take minutes")
    expected = reference(model.folder, texts)
    field = Field([], [])
    for system in systems:
        try:
            entry = Entry.make(system, model, folder)
            contestant = check(entry, texts, expected, folder / f"{system.name}.log")
            field.entries.append(entry)
            display.say(f"{system.title}: {contestant.problem or 'ready'}")
        except (UnavailableError, ServerError, ToolError) as err:
            contestant = Contestant(model.name, system.name, system.title, problem=str(err))
            display.say(f"{system.title}: not available: {err}")
        field.contestants.append(contestant)
    return field


def check(entry: Entry, texts: Sequence[str], expected: Sequence[Sequence[float]], log: Path) -> Contestant:
    """Start a system and compare its vectors with the right ones; others are an error unless the reason is known.

    Args:
        entry: Which.
        texts: What to ask it for.
        expected: The right vectors.
        log: Where what it writes goes.

    Raises:
        ServerError: It did not start.
        UnavailableError: Its vectors are others, or its answer cannot be read.
    """
    system, prepared = entry.system, entry.prepared
    with entry.server(log) as server:
        try:
            with Connection(server.port, _ANSWER_TIMEOUT_S) as connection:
                found = agreement(system.vectors(connection.exchange(entry.request(texts))), expected)
        except (LoadError, OSError, ValueError, KeyError, TypeError) as err:
            raise UnavailableError(f"its answer cannot be used: {err!r}") from err
    problem = ""
    if found.mean < LEAST_COSINE:
        problem = f"mean cosine {found.mean:.4f} to sentence-transformers"
        if not system.drift:
            raise UnavailableError(problem)
    if found.least < LEAST_COSINE and system.drift:
        problem = system.drift
    versions = run_tool([prepared.python, "-c", _VERSIONS, *system.packages])
    return Contestant(
        model=prepared.model.name,
        system=system.name,
        title=system.title,
        problem=problem,
        cosine=found.mean,
        least_cosine=found.least,
        versions=dict(line.split(" ", 1) for line in versions.splitlines()),
    )
