"""Which inputs share a forward pass, and which of those share a row: pure functions of token counts.

An encoder computes rectangles of tokens. Texts of unlike length leave padding in them, unless several short ones stand
one after another in a row, each seeing only itself ("row packing").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Row = list[int]
"""Positions of the inputs that share a row, in the order in which they stand there."""
Pass = list[Row]
"""The rows of one forward pass."""

_PASS_TOKENS = (
    20  # a pass costs as much as this many tokens before its first one; measured on hidden sizes 384 and 1024
)
_SHARED_SPEED = 0.85  # of a pass that takes all threads, next to as many passes of one thread each


@dataclass(frozen=True)
class Policy:
    """How an encoder likes its passes.

    Attributes:
        max_tokens: Tokens of a pass, padding included; a longer input gets a pass alone.
        packs_rows: Whether several inputs may share a row.
        lanes: Passes that it can run side by side, one thread each. A single pass always gets all threads.
        hidden: Its hidden size. Of a layer's operations on a token 24 hidden^2 do not depend on the row's length, and
            4 hidden * length do (arXiv:2001.08361, section 2.1).
    """

    max_tokens: int
    packs_rows: bool = False
    lanes: int = 1
    hidden: int = 768


def plan(counts: Sequence[int], policy: Policy) -> list[Pass]:
    """Spread inputs over passes such that computing them takes the least time.

    Args:
        counts: Tokens of each input, each at least 1.
        policy: How the encoder likes it.

    Returns:
        The passes, the longest inputs first; every position in `counts` stands in exactly one row.
    """
    order = sorted(range(len(counts)), key=lambda i: counts[i], reverse=True)
    if not order:
        return []
    together = _passes(order, counts, policy, policy.max_tokens)
    if policy.lanes == 1:
        return together
    rounds = math.ceil(sum(counts) / (policy.lanes * policy.max_tokens))
    even = _passes(order, counts, policy, math.ceil(sum(counts) / (policy.lanes * rounds)))
    return min(together, even, key=lambda passes: _duration(passes, counts, policy))


def cost(rows: Pass, counts: Sequence[int], hidden: int) -> float:
    """What a pass costs, in units of one token without attention."""
    length = max(sum(counts[i] for i in row) for row in rows)
    return _PASS_TOKENS + len(rows) * length * (1 + length / (6 * hidden))


def _passes(order: Sequence[int], counts: Sequence[int], policy: Policy, max_tokens: int) -> list[Pass]:
    """Cut the sorted inputs into passes of neighbours: of like length, they need little padding."""
    passes: list[Pass] = []
    rest = list(order)
    while rest:
        group = _fitting(rest, counts, max_tokens, packs=policy.packs_rows)
        passes.append(_rows(rest[:group], counts, policy))
        del rest[:group]
    return passes


def _fitting(order: Sequence[int], counts: Sequence[int], max_tokens: int, *, packs: bool) -> int:
    """How many of the inputs, longest first, a pass can take: at least one."""
    length = counts[order[0]]
    most_rows = max(1, max_tokens // length)
    if not packs:
        return most_rows
    room: list[int] = []  # of each row, filled as _first_fit does
    for taken, i in enumerate(order):
        row = next((k for k, free in enumerate(room) if free >= counts[i]), len(room))
        if row == most_rows:
            return taken
        if row == len(room):
            room.append(length)
        room[row] -= counts[i]
    return len(order)


def _rows(group: Sequence[int], counts: Sequence[int], policy: Policy) -> Pass:
    """A row for each input, or shared rows where those cost less."""
    alone = [[i] for i in group]
    if not policy.packs_rows:
        return alone
    shared = _first_fit(group, counts)
    return min(alone, shared, key=lambda rows: cost(rows, counts, policy.hidden))


def _first_fit(group: Sequence[int], counts: Sequence[int]) -> Pass:
    """Fill rows as long as the longest input, each input into the first row with room (first-fit decreasing)."""
    rows: Pass = []
    room: list[int] = []
    for i in group:
        row = next((k for k, free in enumerate(room) if free >= counts[i]), None)
        if row is None:
            row = len(rows)
            rows.append([])
            room.append(counts[group[0]])
        rows[row].append(i)
        room[row] -= counts[i]
    return rows


def _duration(passes: Sequence[Pass], counts: Sequence[int], policy: Policy) -> float:
    """How long the passes take: a single one shares its work among all threads, several are dealt to the lanes."""
    costs = [cost(rows, counts, policy.hidden) for rows in passes]
    if len(costs) == 1:
        return costs[0] / (policy.lanes * _SHARED_SPEED)
    busy = [0.0] * policy.lanes
    for one in costs:
        busy[busy.index(min(busy))] += one
    return max(busy)
