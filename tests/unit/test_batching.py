"""The batch plan: every input once, the budget kept, like lengths together."""

from __future__ import annotations

import random

import pytest

from marvec.batching import plan


@pytest.mark.parametrize(
    ("counts", "budget", "batches"),
    [
        ([], 100, []),
        ([5], 100, [[0]]),
        ([5, 50, 7], 100, [[1, 2], [0]]),
        ([10, 10, 10], 20, [[0, 1], [2]]),
        ([500, 3, 500], 100, [[0], [2], [1]]),
        ([1, 2, 3, 4], 8, [[3, 2], [1, 0]]),
    ],
)
def test_plans(counts: list[int], budget: int, batches: list[list[int]]) -> None:
    assert plan(counts, budget) == batches


@pytest.mark.parametrize("seed", range(50))
def test_every_input_once_within_the_budget(seed: int) -> None:
    rng = random.Random(seed)
    counts = [rng.randint(1, 600) for _ in range(rng.randint(0, 80))]
    budget = rng.randint(1, 2000)
    batches = plan(counts, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(counts)))
    for batch in batches:
        padded = max(counts[i] for i in batch) * len(batch)
        assert padded <= budget or len(batch) == 1
