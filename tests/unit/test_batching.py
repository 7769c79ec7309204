"""The plan of passes: every input in one row, the budget kept, short inputs side by side, all threads at work."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marvec.batching import Pass, Policy, cost, plan

COUNTS = st.lists(st.integers(1, 600), max_size=80)
POLICIES = st.builds(
    Policy,
    max_tokens=st.integers(1, 2000),
    packs_rows=st.booleans(),
    lanes=st.integers(1, 4),
    hidden=st.sampled_from([1, 384, 1024]),
)


def lengths(rows: Pass, counts: list[int]) -> list[int]:
    """Return the tokens of each row, without padding."""
    return [sum(counts[i] for i in row) for row in rows]


@pytest.mark.parametrize(
    ("counts", "budget", "passes"),
    [
        ([], 100, []),
        ([5], 100, [[[0]]]),
        ([5, 50, 7], 100, [[[1], [2]], [[0]]]),
        ([10, 10, 10], 20, [[[0], [1]], [[2]]]),
        ([500, 3, 500], 100, [[[0]], [[2]], [[1]]]),
        ([1, 2, 3, 4], 8, [[[3], [2]], [[1], [0]]]),
    ],
)
def test_one_input_a_row(counts: list[int], budget: int, passes: list[Pass]) -> None:
    assert plan(counts, Policy(budget)) == passes


@pytest.mark.parametrize(
    ("counts", "budget", "passes"),
    [
        ([], 100, []),
        ([5], 100, [[[0]]]),
        ([5, 50, 7], 100, [[[1], [2, 0]]]),  # 50 and 7 + 5: 100 tokens with the padding
        ([5, 50, 7], 99, [[[1]], [[2, 0]]]),  # one row of 50 only; then 7 and 5 share one that is longer than both
        ([10, 10, 10], 20, [[[0, 1]], [[2]]]),
        ([16] * 6, 100, [[[0, 1], [2, 3], [4, 5]]]),  # rows of up to 32 tokens
        ([500, 3, 499], 100, [[[0]], [[2]], [[1]]]),
        ([40, 10, 15, 25], 200, [[[0], [3, 2], [1]]]),  # 40, 25 + 15 and 10
        ([40, 10, 15, 25], 80, [[[0], [3, 2]], [[1]]]),
    ],
)
def test_several_inputs_a_row(counts: list[int], budget: int, passes: list[Pass]) -> None:
    assert plan(counts, Policy(budget, packs_rows=True)) == passes


@pytest.mark.parametrize(
    ("rows", "hidden", "expected"),
    [
        ([[0]], 1, 20 + 1 + 6 * (1 + 6 / 6)),
        ([[0], [1]], 1, 20 + 2 + 12 * (1 + 6 / 6)),
        ([[0, 1]], 1, 20 + 1 + 9 * (1 + 9 / 6)),
        ([[0], [1, 2]], 2, 20 + 2 + 12 * (1 + 6 / 12)),
        ([[0], [1], [2]], 384, 20 + 3 + 18 * (1 + 6 / 2304)),
    ],
)
def test_what_a_pass_costs(rows: Pass, hidden: int, expected: float) -> None:
    """20 tokens for the pass, one for each row and token, and attention: length / (6 * hidden) of the tokens."""
    assert cost(rows, [6, 3, 2], hidden) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("counts", "passes"),
    [
        # One pass of all threads: (20 + 22.04) / 1.7 = 24.7; two of one thread: 20 + 11.02 = 31.0.
        ([10, 10], [[[0], [1]]]),
        # One pass of all threads: (20 + 103.1) / 1.7 = 72.4; two of one thread: 20 + 51.5 = 71.5.
        ([50, 50], [[[0]], [[1]]]),
        # Three full passes would leave a lane idle during the last; four of 75 do not.
        ([25] * 12, [[[0], [1], [2]], [[3], [4], [5]], [[6], [7], [8]], [[9], [10], [11]]]),
    ],
)
def test_two_lanes(counts: list[int], passes: list[Pass]) -> None:
    assert plan(counts, Policy(100, lanes=2)) == passes


@pytest.mark.parametrize("lanes", [2, 3, 4])
@pytest.mark.parametrize("packs_rows", [False, True])
def test_equal_inputs_are_dealt_evenly(lanes: int, packs_rows: bool) -> None:
    passes = plan([16] * (24 * lanes), Policy(256, packs_rows, lanes))

    assert [sum(len(row) for row in rows) for rows in passes] == [12] * (2 * lanes)


@settings(deadline=None)
@given(COUNTS, POLICIES)
def test_every_input_stands_in_exactly_one_row(counts: list[int], policy: Policy) -> None:
    passes = plan(counts, policy)

    assert sorted(i for rows in passes for row in rows for i in row) == list(range(len(counts)))
    assert all(rows and all(rows) for rows in passes)


@settings(deadline=None)
@given(COUNTS, POLICIES)
def test_the_budget_is_kept_with_its_padding(counts: list[int], policy: Policy) -> None:
    for rows in plan(counts, policy):
        padded = len(rows) * max(lengths(rows, counts))
        assert padded <= policy.max_tokens or rows == [[rows[0][0]]]


@settings(deadline=None)
@given(COUNTS, POLICIES)
def test_no_row_is_longer_than_the_longest_input_of_its_pass_or_32_tokens(counts: list[int], policy: Policy) -> None:
    for rows in plan(counts, policy):
        longest = max(counts[i] for row in rows for i in row)
        assert longest == counts[rows[0][0]]
        assert max(lengths(rows, counts)) <= max(longest, 32)
        assert policy.packs_rows or all(len(row) == 1 for row in rows)


@settings(deadline=None)
@given(COUNTS, POLICIES)
def test_the_longest_inputs_come_first(counts: list[int], policy: Policy) -> None:
    passes = [[counts[i] for row in rows for i in row] for rows in plan(counts, policy)]

    for earlier, later in zip(passes, passes[1:]):
        assert min(earlier) >= max(later)


@settings(deadline=None)
@given(COUNTS, POLICIES)
def test_shared_rows_never_cost_more_than_rows_of_their_own(counts: list[int], policy: Policy) -> None:
    for rows in plan(counts, policy):
        alone = [[i] for row in rows for i in row]
        assert cost(rows, counts, policy.hidden) <= cost(alone, counts, policy.hidden)
