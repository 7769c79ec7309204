"""Marvec's engine without a server: texts per second, and how near it comes to what the cores can do."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from bench.corpora import Corpus
from bench.display import Display
from bench.entry import Entry
from bench.load import Load
from bench.result import EngineSample
from bench.systems.marvec import ARCHIVE
from bench.systems.system import REPOSITORY
from bench.venv import run_tool

# Texts in one call of the embedder, and in all calls: a lone request, a batch of requests, a bulk.
CASES = ((Load(1, 1), 64), (Load(1, 32), 256), (Load(1, 256), 256))


def engine(
    entries: Sequence[Entry], corpus: Corpus, repeats: int, folder: Path, display: Display
) -> list[EngineSample]:
    """Unpack each archive and time its embedder in a process of its own, with a thread a core.

    Args:
        entries: Marvec in some precisions.
        corpus: What is embedded.
        repeats: How often.
        folder: An empty folder for the archives.
        display: Where progress is shown.

    Raises:
        ToolError: An archive cannot be loaded.
    """
    display.expect(len(entries))
    found = []
    for entry in entries:
        name, model = entry.system.name, entry.prepared.model
        unpacked = folder / f"{name}-{corpus.name}"
        with zipfile.ZipFile(entry.prepared.folder / f"{ARCHIVE}.mar") as archive:
            archive.extractall(unpacked)
        cases = [_calls(corpus, load, texts, model.shrink * corpus.shrink) for load, texts in CASES]
        measured = iter(_time(unpacked, cases, repeats))
        for calls in cases:
            for number in range(repeats):
                times = next(measured)
                found.append(
                    EngineSample(
                        model=model.name,
                        system=name,
                        corpus=corpus.name,
                        batch=len(calls[0]),
                        round=number,
                        texts=len(calls[0]) * len(calls),
                        seconds=times["seconds"],
                        flops=times["flops"],
                        gemm_flops_per_s=times["gemm_flops_per_s"],
                    )
                )
        display.advance(f"{name} engine")
    return found


def _calls(corpus: Corpus, load: Load, texts: int, shrink: int) -> list[list[str]]:
    """So many texts in calls of a load's size; fewer of both where texts or model are dear."""
    load = load.shrunk(shrink)
    return load.batches(corpus)[: max(1, texts // shrink // load.texts)]


def _time(unpacked: Path, cases: Sequence[object], repeats: int) -> list[dict[str, float]]:
    measured: list[dict[str, float]] = json.loads(
        run_tool(
            [sys.executable, "-m", "bench.engine_process", unpacked],
            {"OMP_NUM_THREADS": str(len(os.sched_getaffinity(0))), "PYTHONPATH": str(REPOSITORY)},
            json.dumps({"cases": cases, "repeats": repeats}),
        )
    )
    return measured
