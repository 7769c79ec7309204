"""The comparison: every system under every load, in rounds that visit one system after another.

What changes in the machine from minute to minute then changes for all of them alike. All servers run all the time and
idle while another one is asked; where memory does not allow that, each is started anew in each round.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from bench.connection import LoadError
from bench.corpora import Corpus
from bench.display import Display
from bench.drive import Window, drive
from bench.entry import Entry
from bench.load import Load
from bench.result import Sample
from bench.server import Server, ServerError

MEMORY_SHARE = 0.8
# Python, torch and an engine's buffers beside the weights, which may lie in memory twice: as loaded, and rearranged.
PROCESS_BYTES = 800_000_000
WEIGHT_COPIES = 2


@dataclass(frozen=True)
class Plan:
    """What to compare.

    Attributes:
        entries: Who serves, all of them the same model; at least one.
        corpora: What is sent.
        loads: How it is sent.
        rounds: How often each system is visited.
        window: How long each visit is.
        cores: The cores that servers may run on; None for all.
    """

    entries: Sequence[Entry]
    corpora: Sequence[Corpus]
    loads: Sequence[Load]
    rounds: int
    window: Window
    cores: Sequence[int] | None = None

    def cells(self) -> list[tuple[Corpus, Load]]:
        """Each corpus under each load, with fewer texts a request where texts or model are dear; none of them twice."""
        found: list[tuple[Corpus, Load]] = []
        for corpus in self.corpora:
            for load in self.loads:
                cell = (corpus, load.shrunk(corpus.shrink * self.entries[0].prepared.model.shrink))
                if cell not in found:
                    found.append(cell)
        return found

    def fits_memory(self) -> bool:
        """Whether all servers have room beside each other."""
        needed = 0
        for entry in self.entries:
            copies = entry.system.processes(os.cpu_count() or 1)
            needed += copies * (PROCESS_BYTES + WEIGHT_COPIES * entry.prepared.model.weight_bytes)
        return needed < MEMORY_SHARE * psutil.virtual_memory().available


def compare(plan: Plan, folder: Path, display: Display) -> Iterator[Sample]:
    """Carry out a plan, one sample after another. What fails is told in its sample, and the rest goes on.

    Args:
        plan: What to compare.
        folder: For logs.
        display: Where progress is shown.
    """
    display.expect(plan.rounds * len(plan.entries) * len(plan.cells()))
    for sample in _together(plan, folder) if plan.fits_memory() else _apart(plan, folder):
        display.advance(f"{sample.system}, {sample.corpus}, {sample.load}")
        yield sample


def _together(plan: Plan, folder: Path) -> Iterator[Sample]:
    with ExitStack() as stack:
        visits = []
        for entry in plan.entries:
            server = entry.server(folder / f"{entry.system.name}.log", plan.cores)
            visit = _Visit(plan, entry, server)
            try:
                stack.enter_context(server)
                visits.append(visit)
            except ServerError as err:
                yield from (visit.failed(corpus, load, 0, err) for corpus, load in plan.cells())
        turn = 0
        for number in range(plan.rounds):
            for corpus, load in plan.cells():
                # Another one begins each time, so that none always follows the same neighbour.
                for visit in visits[turn:] + visits[:turn]:
                    yield visit.sample(corpus, load, number)
                turn = (turn + 1) % max(1, len(visits))


def _apart(plan: Plan, folder: Path) -> Iterator[Sample]:
    for number in range(plan.rounds):
        for entry in plan.entries:
            server = entry.server(folder / f"{entry.system.name}-{number}.log", plan.cores)
            visit = _Visit(plan, entry, server)
            try:
                with server:
                    yield from (visit.sample(corpus, load, number) for corpus, load in plan.cells())
            except ServerError as err:
                yield from (visit.failed(corpus, load, number, err) for corpus, load in plan.cells())


@dataclass(frozen=True)
class _Visit:
    """A server and what is asked of it."""

    plan: Plan
    entry: Entry
    server: Server

    def sample(self, corpus: Corpus, load: Load, number: int) -> Sample:
        try:
            requests, least = self.entry.requests(corpus, load), self.entry.least_bytes(load)
            driven = drive(self.server.port, requests, load, least, self.plan.window)
        except (LoadError, OSError) as err:
            return self.failed(corpus, load, number, err)
        return replace(
            self._empty(corpus, load, number),
            latencies_s=driven.latencies_s,
            elapsed_s=driven.elapsed_s,
            client_cpu_s=driven.client_cpu_s,
        )

    def failed(self, corpus: Corpus, load: Load, number: int, error: Exception) -> Sample:
        return replace(self._empty(corpus, load, number), problem=str(error) or type(error).__name__)

    def _empty(self, corpus: Corpus, load: Load, number: int) -> Sample:
        return Sample(
            model=self.entry.prepared.model.name,
            system=self.entry.system.name,
            corpus=corpus.name,
            cores=len(self.plan.cores or os.sched_getaffinity(0)),
            clients=load.clients,
            texts=load.texts,
            round=number,
        )
