"""How speed changes with the length of texts, with the texts in a request, and with cores.

Each is a comparison of its own, so that systems are visited in turns here too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import corpora
from bench.comparison import Plan, compare
from bench.display import Display
from bench.drive import Window
from bench.entry import Entry
from bench.load import Load
from bench.result import Sample

LENGTHS = (8, 16, 32, 64, 128, 256, 512)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
LENGTH_LOAD = Load(4, 8)
CORES_LOADS = (Load(1, 1), Load(16, 1), Load(4, 32))


def core_counts() -> list[int]:
    """1, 2, 4 and so on up to the cores of this process, those included."""
    cores = len(os.sched_getaffinity(0))
    return sorted({*(2**i for i in range(cores.bit_length())), cores})


def scaling(entries: Sequence[Entry], rounds: int, window: Window, folder: Path, display: Display) -> Iterator[Sample]:
    """Measure all three.

    Args:
        entries: Who serves, all of them the same model.
        rounds: How often each system is visited.
        window: How long each visit is.
        folder: For logs.
        display: Where progress is shown.
    """
    model = entries[0].prepared.model

    def texts(name: str) -> corpora.Corpus:
        return corpora.build(name, model.language, model.tokenizer)

    mixed, cores = texts("mixed"), sorted(os.sched_getaffinity(0))
    by_length = [texts(f"length-{tokens}") for tokens in LENGTHS]
    plans = [
        Plan(entries, by_length, [LENGTH_LOAD], rounds, window),
        Plan(entries, [mixed], [Load(1, size) for size in BATCHES], rounds, window),
        *(Plan(entries, [mixed], CORES_LOADS, rounds, window, cores[:count]) for count in core_counts()),
    ]
    for plan in plans:
        yield from compare(plan, folder, display)
