"""Percentiles, medians, ratios and slopes."""

from __future__ import annotations

import pytest

from bench import summary
from bench.result import Sample
from bench.summary import Cell, Spread


def sample(system: str, number: int, latencies_s: list[float], elapsed_s: float = 1.0, problem: str = "") -> Sample:
    return Sample("tiny", system, "mixed", 2, 4, 32, number, latencies_s, elapsed_s, 0.1, problem)


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 1.0), (1, 1.0), (50, 5.0), (51, 6.0), (95, 10.0), (99, 10.0), (100, 10.0)]
)
def test_a_percentile_is_the_nearest_rank(percent: float, value: float) -> None:
    assert summary.percentile([10.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], percent) == value


def test_a_spread_is_median_and_range() -> None:
    assert summary.spread([4.0, 1.0, 2.0]) == Spread(2.0, 1.0, 4.0)
    assert summary.spread([1.0, 2.0]) == Spread(1.5, 1.0, 2.0)


def test_of_nothing_there_are_no_figures() -> None:
    with pytest.raises(ValueError, match=r"^no percentile of no values$"):
        summary.percentile([], 50)
    with pytest.raises(ValueError, match=r"^no spread of no values$"):
        summary.spread([])
    with pytest.raises(ValueError, match=r"^no slope of fewer than two points$"):
        summary.slope([1.0, 1.0], [2.0, 3.0])


def test_texts_per_second_counts_texts_not_requests() -> None:
    assert sample("one", 0, [0.5, 0.5, 0.5], elapsed_s=2.0).texts_per_s == 48.0


def test_rounds_are_joined_by_their_medians() -> None:
    rounds = [
        sample("one", 0, [0.1, 0.3]),
        sample("two", 0, [], problem="status 500: no"),
        sample("one", 1, [0.2, 0.2], elapsed_s=2.0),
        sample("two", 1, [], problem="the server closed the connection"),
        sample("one", 2, [0.4, 0.5, 0.6], elapsed_s=1.0),
    ]
    assert summary.cells(rounds) == [
        Cell("tiny", "one", "mixed", 2, "4x32", Spread(64.0, 32.0, 96.0), p50_s=0.2, p95_s=0.3, p99_s=0.3),
        Cell("tiny", "two", "mixed", 2, "4x32", problem="status 500: no"),
    ]


def test_a_round_that_failed_does_not_count_while_others_succeeded() -> None:
    (cell,) = summary.cells([sample("one", 0, [], problem="timed out"), sample("one", 1, [1.0])])
    assert cell.texts_per_s == Spread(32.0, 32.0, 32.0)
    assert cell.problem == ""


def test_a_ratio_is_to_the_baselines_median() -> None:
    baseline = Cell("tiny", "base", "mixed", 2, "1x1", Spread(40.0, 30.0, 50.0))
    faster = Cell("tiny", "fast", "mixed", 2, "1x1", Spread(100.0, 90.0, 110.0))
    failed = Cell("tiny", "poor", "mixed", 2, "1x1", problem="no")
    assert summary.ratio(faster, baseline) == 2.5
    assert summary.ratio(failed, baseline) is None
    assert summary.ratio(faster, failed) is None
    assert summary.ratio(faster, None) is None


def test_a_slope_is_that_of_the_best_line() -> None:
    assert summary.slope([0.0, 1.0, 2.0], [1.0, 3.0, 5.0]) == 2.0
    assert summary.slope([0.0, 1.0, 2.0], [1.0, 0.0, 1.0]) == 0.0
