"""The comparison: every system under every load, in rounds that visit one system after another.

What changes in the machine from minute to minute then changes for all of them alike. All servers run all the time and
idle while another one is asked; where memory does not allow that, each is started anew in each round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.connection import LoadError
from bench.corpora import Corpus
from bench.display import Display
from bench.drive import Window, drive
from bench.entry import Entry
from bench.load import Load
from bench.model import Model
from bench.reference import TEXTS, reference
from bench.result import Contestant, Sample
from bench.server import Server, ServerError
from bench.systems.system import System, UnavailableError

MEMORY_SHARE = 0.8
# Python, torch and an engine's buffers beside the weights.
PROCESS_BYTES = 800_000_000
WEIGHT_COPIES = 2


@dataclass(frozen=True)
class Plan:
    """What to compare.

    Attributes:
        model: What is served.
        systems: Who serves it.
        corpora: What is sent.
        loads: How it is sent.
        rounds: How often each system is visited.
        window: How long each visit is.
    """

    model: Model
    systems: Sequence[System]
    corpora: Sequence[Corpus]
    loads: Sequence[Load]
    rounds: int
    window: Window

    def cells(self) -> list[tuple[Corpus, Load]]:
        """Each corpus under each load, with fewer texts a request where texts or model are dear; none of them twice."""
        shrunk = {
            (corpus.name, load.shrunk(corpus.shrink * self.model.shrink).name): (
                corpus,
                load.shrunk(corpus.shrink * self.model.shrink),
            )
            for corpus in self.corpora
            for load in self.loads
        }
        return list(shrunk.values())


@dataclass(frozen=True)
class Compared:
    """What came of a plan."""

    contestants: list[Contestant]
    samples: list[Sample]


def compare(plan: Plan, folder: Path, display: Display) -> Compared:
    """Carry out a plan. A system that cannot take part is told among the contestants, and the rest goes on.

    Args:
        plan: What to compare.
        folder: An empty folder for archives and logs.
        display: Where progress is shown.
    """
    display.say(f"{plan.model.name}: preparing")
    texts = plan.corpora[0].texts[:TEXTS]
    expected = reference(plan.model.folder, texts)
    contestants: dict[str, Contestant] = {}
    samples: list[Sample] = []
    with ExitStack() as stack:
        running: list[tuple[Entry, Server | None]] = []
        for system in plan.systems:
            try:
                entry = Entry.make(system, plan.model, folder)
                with ExitStack() as probation:
                    server = probation.enter_context(entry.server(folder / f"{system.name}.log"))
                    contestants[system.name] = entry.contestant(server, texts, expected)
                    if _fits(plan):
                        stack.push(probation.pop_all())
                        running.append((entry, server))
                    else:
                        running.append((entry, None))
                display.say(f"{system.title}: {contestants[system.name].problem or 'ready'}")
            except (UnavailableError, ServerError, LoadError, OSError, ValueError, KeyError, TypeError) as err:
                contestants[system.name] = Contestant(plan.model.name, system.name, system.title, problem=str(err))
                display.say(f"{system.title}: not available: {err}")
        display.expect(plan.rounds * len(running) * len(plan.cells()))
        for sample in _rounds(plan, running, folder):
            samples.append(sample)
            display.advance(f"{sample.system} {sample.corpus} {sample.load}")
    return Compared(list(contestants.values()), samples)


def _fits(plan: Plan) -> bool:
    """Whether all servers have room beside each other, with what each may still grow by."""
    cores = psutil.cpu_count() or 1
    each = PROCESS_BYTES + WEIGHT_COPIES * plan.model.weight_bytes
    needed = sum(system.processes(cores) * each for system in plan.systems)
    return needed < MEMORY_SHARE * psutil.virtual_memory().total


def _rounds(plan: Plan, running: Sequence[tuple[Entry, Server | None]], folder: Path) -> Iterator[Sample]:
    turn = 0
    for number in range(plan.rounds):
        together = [(entry, server) for entry, server in running if server is not None]
        for corpus, load in plan.cells():
            # Another one begins each time, so that none always follows the same neighbour.
            for entry, server in together[turn:] + together[:turn]:
                yield _sample(plan, entry, server, corpus, load, number)
            turn = (turn + 1) % max(1, len(together))
        for entry in [entry for entry, server in running if server is None]:
            yield from _alone(plan, entry, folder / f"{entry.system.name}-{number}.log", number)


def _alone(plan: Plan, entry: Entry, log: Path, number: int) -> Iterator[Sample]:
    try:
        with entry.server(log) as server:
            for corpus, load in plan.cells():
                yield _sample(plan, entry, server, corpus, load, number)
    except ServerError as err:
        for corpus, load in plan.cells():
            yield _failed(plan, entry, corpus, load, number, str(err))


def _sample(plan: Plan, entry: Entry, server: Server, corpus: Corpus, load: Load, number: int) -> Sample:
    try:
        driven = drive(server.port, entry.requests(corpus, load), load, entry.least_bytes(load), plan.window)
    except (LoadError, OSError) as err:
        return _failed(plan, entry, corpus, load, number, str(err))
    return Sample(
        model=plan.model.name,
        system=entry.system.name,
        corpus=corpus.name,
        clients=load.clients,
        texts=load.texts,
        round=number,
        latencies_s=driven.latencies_s,
        elapsed_s=driven.elapsed_s,
        client_cpu_s=driven.client_cpu_s,
    )


def _failed(plan: Plan, entry: Entry, corpus: Corpus, load: Load, number: int, problem: str) -> Sample:
    names = (plan.model.name, entry.system.name, corpus.name)
    return Sample(*names, load.clients, load.texts, number, problem=problem)
