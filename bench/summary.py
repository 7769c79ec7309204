"""Pure arithmetic: samples of several rounds -> medians, spreads and ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from bench.result import Sample

_Key = tuple[str, str, str, int, str]


@dataclass(frozen=True)
class Spread:
    """A median with the range it was found in."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Cell:
    """All rounds of one system, model, corpus, number of cores and load.

    Attributes:
        texts_per_s: Over the rounds.
        p50_s: Median over the rounds of the latency that half of the requests stay under.
        p95_s: The same for 95 %.
        p99_s: The same for 99 %.
        problem: Why there are no figures; "" when there are.
    """

    model: str
    system: str
    corpus: str
    cores: int
    load: str
    texts_per_s: Spread | None = None
    p50_s: float = 0.0
    p95_s: float = 0.0
    p99_s: float = 0.0
    problem: str = ""


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that `percent` per cent of the values do not exceed: the nearest rank, so it is one of them.

    Raises:
        ValueError: There are no values.
    """
    if not values:
        raise ValueError("no percentile of no values")
    rank = -(-len(values) * percent // 100)  # rounded up
    return sorted(values)[max(0, int(rank) - 1)]


def spread(values: Sequence[float]) -> Spread:
    """Median, lowest and highest of some values.

    Raises:
        ValueError: There are no values.
    """
    if not values:
        raise ValueError("no spread of no values")
    return Spread(median(values), min(values), max(values))


def cells(samples: Sequence[Sample]) -> list[Cell]:
    """Join the rounds, in the order in which each cell came first."""
    groups: dict[_Key, list[Sample]] = {}
    for sample in samples:
        key = (sample.model, sample.system, sample.corpus, sample.cores, sample.load)
        groups.setdefault(key, []).append(sample)
    return [_cell(key, rounds) for key, rounds in groups.items()]


def ratio(cell: Cell, baseline: Cell | None) -> float | None:
    """How many times the baseline's texts per second; None where either has none."""
    if cell.texts_per_s is None or baseline is None or baseline.texts_per_s is None:
        return None
    return cell.texts_per_s.median / baseline.texts_per_s.median


def _cell(key: _Key, rounds: Sequence[Sample]) -> Cell:
    sound = [sample for sample in rounds if sample.latencies_s]
    if not sound:
        return Cell(*key, problem=rounds[0].problem)
    p50_s, p95_s, p99_s = (
        median(percentile(sample.latencies_s, percent) for sample in sound) for percent in (50, 95, 99)
    )
    return Cell(*key, spread([sample.texts_per_s for sample in sound]), p50_s, p95_s, p99_s)


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The slope of the straight line that fits some points best (least squares).

    Raises:
        ValueError: There are fewer than two different x.
    """
    if len(set(x)) < 2:
        raise ValueError("no slope of fewer than two points")
    mean_x, mean_y = fmean(x), fmean(y)
    rise = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return rise / sum((a - mean_x) ** 2 for a in x)
