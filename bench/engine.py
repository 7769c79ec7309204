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

# Texts in one call of the embedder: a lone request, a batch of requests, a bulk.
SIZES = (1, 32, 256)
LONE_TEXTS = 64


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
    display.expect(len(entries) * len(SIZES))
    found = []
    for entry in entries:
        name, model = entry.system.name, entry.prepared.model
        unpacked = folder / f"{name}-unpacked"
        with zipfile.ZipFile(entry.prepared.folder / f"{ARCHIVE}.mar") as archive:
            archive.extractall(unpacked)
        for size in SIZES:
            batches = Load(1, size).batches(corpus)[: LONE_TEXTS if size == 1 else None]
            for number, measured in enumerate(_time(unpacked, batches, repeats)):
                texts = size * len(batches)
                found.append(EngineSample(model.name, name, corpus.name, size, number, texts, **measured))
            display.advance(f"{name} engine {size}")
    return found


def _time(unpacked: Path, batches: Sequence[Sequence[str]], repeats: int) -> list[dict[str, float]]:
    cores = str(len(os.sched_getaffinity(0)))
    measured: list[dict[str, float]] = json.loads(
        run_tool(
            [sys.executable, "-m", "bench.engine_process", unpacked],
            {"OMP_NUM_THREADS": cores, "PYTHONPATH": str(REPOSITORY)},
            json.dumps({"batches": batches, "repeats": repeats}),
        )
    )
    return measured
