"""Soak: one system at full load for minutes, with requests of random sizes; does its memory come to rest?"""

from __future__ import annotations

import random
from pathlib import Path
from statistics import median

from bench import corpora
from bench.connection import LoadError
from bench.drive import Window, drive
from bench.entry import Entry
from bench.load import Load
from bench.memory import MemoryWatch
from bench.model import Model
from bench.result import Soak
from bench.summary import slope

CLIENTS = 8
MOST_TEXTS = 32
REQUESTS = 400
LENGTHS = (3, 8, 16, 32, 64, 128, 256, 512)
LONGEST_INTERVAL_S = 5.0
LEAST_SAMPLES = 20
PLATEAU_SHARE = 0.02


def soak(entry: Entry, minutes: float, folder: Path) -> Soak:
    """Load a system and watch its memory; a request that fails ends the load, and is told.

    Args:
        entry: Which.
        minutes: How long.
        folder: For logs.

    Raises:
        ServerError: The server did not start.
    """
    model = entry.prepared.model
    requests = [entry.request(texts) for texts in random_requests(model, REQUESTS)]
    window = Window(seconds=60 * minutes, most_requests=10_000_000)
    interval_s = min(LONGEST_INTERVAL_S, 60 * minutes / LEAST_SAMPLES)
    answered, problem = 0, ""
    with entry.server(folder / "soak.log") as server, MemoryWatch(server, interval_s) as watch:
        try:
            driven = drive(server.port, requests, Load(CLIENTS, 1), entry.least_bytes(Load(1, 1)), window)
            answered = len(driven.latencies_s)
        except LoadError as err:
            problem = str(err)
    return Soak(model.name, entry.system.name, answered, watch.seconds, watch.pss_bytes, problem)


def random_requests(model: Model, count: int, seed: int = 0) -> list[list[str]]:
    """Texts of some requests: 1 to MOST_TEXTS each, of any of LENGTHS mixed; the same arguments give the same ones."""
    draw = random.Random(seed)
    pools = [corpora.build(f"length-{tokens}", model.language, model.tokenizer).texts for tokens in LENGTHS]
    return [[draw.choice(draw.choice(pools)) for _ in range(draw.randint(1, MOST_TEXTS))] for _ in range(count)]


def second_half_growth(soaked: Soak) -> float:
    """By which share of itself memory grew over the second half, by the line that fits it best.

    Raises:
        ValueError: There are too few samples.
    """
    half = len(soaked.seconds) // 2
    seconds, pss_bytes = soaked.seconds[half:], soaked.pss_bytes[half:]
    return slope(seconds, pss_bytes) * (seconds[-1] - seconds[0]) / median(pss_bytes)


def at_rest(soaked: Soak) -> bool:
    """Whether memory came to a plateau: it grew by less than PLATEAU_SHARE over the second half."""
    return second_half_growth(soaked) < PLATEAU_SHARE
