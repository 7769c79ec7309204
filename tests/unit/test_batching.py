"""The plan of passes: every input in one row, the budget kept, short inputs side by side, all threads at work."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marvec.batching import Pass, Policy, Row, cost, plan, width

COUNTS = st.lists(st.integers(1, 600), max_size=80)
POLICIES = st.builds(
    Policy,
    max_tokens=st.integers(1, 2000),
    packs_rows=st.booleans(),
    lanes=st.integers(1, 4),
    hidden=st.sampled_from([1, 384, 1024]),
)


def tokens(row: Row, counts: list[int]) -> int:
    """Return the tokens of a row, without padding."""
    return sum(counts[i] for i in row)


@pytest.mark.parametrize(
    ("tokens", "padded"),
    [(1, 8), (8, 8), (9, 16), (63, 64), (64, 64), (65, 80), (128, 128), (129, 160), (257, 320), (512, 512), (513, 640)],
)
def test_rows_have_few_widths(tokens: int, padded: int) -> None:
    """Steps of 8 up to 64, of 16 up to 128, of 32 up to 256, and so on."""
    assert width(tokens) == padded


@pytest.mark.parametrize(
    ("counts", "budget", "passes"),
    [
        ([], 100, []),
        ([5], 100, [[[0]]]),
        ([5, 50, 7], 100, [[[1]], [[2], [0]]]),  # 50 are padded to 56, and two of those are over the budget
        ([5, 50, 7], 112, [[[1]], [[2], [0]]]),  # 50 and 7 would fit into one, with 49 tokens of padding
        ([16, 16, 16], 32, [[[0], [1]], [[2]]]),
        ([500, 3, 500], 100, [[[0]], [[2]], [[1]]]),
        ([8, 16, 24, 32], 64, [[[3], [2]], [[1], [0]]]),
    ],
)
def test_one_input_a_row(counts: list[int], budget: int, passes: list[Pass]) -> None:
    assert plan(counts, Policy(budget)) == passes


@pytest.mark.parametrize(
    ("counts", "budget", "passes"),
    [
        ([5], 100, [[[0]]]),
        ([50, 7, 5], 128, [[[0, 1, 2]]]),  # 62 tokens: one row of 64
        ([16] * 6, 96, [[[5, 4], [3, 2], [1, 0]]]),  # rows of 32: fewer rows for the same tokens
        ([500, 3, 499], 100, [[[0, 1]], [[2]]]),  # 503 tokens are padded to 512 like 500
        ([40, 10, 15, 25], 160, [[[0, 3, 2, 1]]]),  # 90 tokens in 96 cost less than three rows of 40
        ([40, 10, 15, 25], 80, [[[0, 2]], [[3, 1]]]),  # no pass may take 96: 55 tokens in 56, and 35 in 40
    ],
)
def test_several_inputs_a_row(counts: list[int], budget: int, passes: list[Pass]) -> None:
    assert plan(counts, Policy(budget, packs_rows=True)) == passes


@pytest.mark.parametrize(
    ("rows", "hidden", "expected"),
    [
        ([[0]], 1, 20 + 1 + 16 * (1 + 16 / 6)),
        ([[0], [1]], 1, 20 + 2 + 32 * (1 + 16 / 6)),
        ([[0, 1]], 1, 20 + 1 + 24 * (1 + 24 / 6)),
        ([[0], [1, 2]], 2, 20 + 2 + 32 * (1 + 16 / 12)),
        ([[0], [1], [2]], 384, 20 + 3 + 48 * (1 + 16 / 2304)),
    ],
)
def test_what_a_pass_costs(rows: Pass, hidden: int, expected: float) -> None:
    """20 tokens for the pass, one for each row and token, and attention: length / (6 * hidden) of the tokens."""
    assert cost(rows, [14, 8, 4], hidden) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("counts", "passes"),
    [
        # One pass of all threads: (20 + 2 + 16.03) / 1.8 = 21.1; two of one thread: 20 + 1 + 8.01 = 29.0.
        ([8, 8], [[[0], [1]]]),
        # One pass of all threads: (20 + 2 + 96.99) / 1.8 = 66.1; two of one thread: 20 + 1 + 48.5 = 69.5.
        ([48, 48], [[[0], [1]]]),
        # One pass of all threads: (20 + 2 + 113.4) / 1.8 = 75.2; two of one thread: 20 + 1 + 56.7 = 77.7.
        ([56, 56], [[[0], [1]]]),
        # Three passes of two rows would leave a lane idle during the last; six of one row do not.
        ([64] * 6, [[[0]], [[1]], [[2]], [[3]], [[4]], [[5]]]),
    ],
)
def test_two_lanes(counts: list[int], passes: list[Pass]) -> None:
    assert plan(counts, Policy(128, lanes=2)) == passes


@pytest.mark.parametrize("lanes", [2, 3, 4])
@pytest.mark.parametrize("packs_rows", [False, True])
def test_equal_inputs_are_dealt_evenly(lanes: int, packs_rows: bool) -> None:
    passes = plan([16] * (24 * lanes), Policy(256, packs_rows, lanes))

    inputs = [sum(len(row) for row in rows) for rows in passes]
    assert len(passes) % lanes == 0
    assert max(inputs) == min(inputs)


@settings(deadline=None)
@given(COUNTS, POLICIES)
def test_every_input_stands_in_exactly_one_row(counts: list[int], policy: Policy) -> None:
    passes = plan(counts, policy)

    assert sorted(i for rows in passes for row in rows for i in row) == list(range(len(counts)))
    assert all(rows and all(rows) for rows in passes)
    assert policy.packs_rows or all(len(row) == 1 for rows in passes for row in rows)


@settings(deadline=None)
@given(COUNTS, POLICIES)
def test_the_budget_is_kept_with_its_padding(counts: list[int], policy: Policy) -> None:
    for rows in plan(counts, policy):
        padded = len(rows) * width(max(tokens(row, counts) for row in rows))
        assert padded <= policy.max_tokens or len(rows) == 1


@settings(deadline=None)
@given(COUNTS, POLICIES)
def test_no_row_is_longer_than_its_longest_input_or_the_budget(counts: list[int], policy: Policy) -> None:
    for rows in plan(counts, policy):
        for row in rows:
            assert tokens(row, counts) <= max(width(max(counts[i] for i in row)), policy.max_tokens)


@settings(deadline=None)
@given(COUNTS, POLICIES)
def test_shared_rows_never_cost_more_than_rows_of_their_own(counts: list[int], policy: Policy) -> None:
    shared, alone = (
        sum(cost(rows, counts, policy.hidden) for rows in plan(counts, replace(policy, packs_rows=packs, lanes=1)))
        for packs in (True, False)
    )
    assert shared <= alone * 1.0000001


def test_where_states_are_dealt_out_a_long_input_shares_its_row_with_few() -> None:
    """Laid out anew, a pass holds inputs times the longest: beside a long one that would be all memory."""
    counts = [7200, *[3] * 300, *[40] * 20]
    policy = Policy(512, packs_rows=True, deals_out=True)
    passes = plan(counts, policy)
    assert sorted(i for rows in passes for row in rows for i in row) == list(range(len(counts)))
    [(with_long,)] = [rows for rows in passes if any(0 in row for row in rows)]
    assert len(with_long) <= 2
    for rows in passes:
        inputs = [counts[i] for row in rows for i in row]
        assert len(inputs) * width(max(inputs)) <= max(2 * width(7200), 16 * policy.max_tokens)
    assert any(len(row) > 8 for rows in passes for row in rows)
