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

# Measured on hidden sizes 384 and 1024: what a pass and a row cost before their first token.
_PASS_TOKENS = 20
_ROW_TOKENS = 1
_SHARED_ROW_TOKENS = 32  # very short inputs share rows of this length
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
    return _PASS_TOKENS + len(rows) * (_ROW_TOKENS + length * (1 + length / (6 * hidden)))


def _passes(order: Sequence[int], counts: Sequence[int], policy: Policy, max_tokens: int) -> list[Pass]:
    """Cut the sorted inputs into passes of neighbours: of like length, they need little padding."""
    passes: list[Pass] = []
    rest = list(order)
    while rest:
        passes.append(_first_pass(rest, counts, policy, max_tokens))
        del rest[: sum(len(row) for row in passes[-1])]
    return passes


def _first_pass(order: Sequence[int], counts: Sequence[int], policy: Policy, max_tokens: int) -> Pass:
    """As many of the inputs, from the first one on, as fit: a row for each, or shared rows where those cost less."""
    longest = counts[order[0]]
    if not policy.packs_rows:
        return [[i] for i in order[: max(1, max_tokens // longest)]]
    length = max(longest, min(_SHARED_ROW_TOKENS, max_tokens))
    shared = _first_fit(order, counts, length, max(1, max_tokens // length))
    alone = [[i] for i in order[: sum(len(row) for row in shared)]]
    if len(alone) * longest > max_tokens:
        return shared
    return min(alone, shared, key=lambda rows: cost(rows, counts, policy.hidden))


def _first_fit(order: Sequence[int], counts: Sequence[int], length: int, most_rows: int) -> Pass:
    """Fill rows, each input into the first one with room for it, until one finds none (first-fit decreasing)."""
    rows: Pass = []
    room: list[int] = []
    for i in order:
        k = next((k for k, free in enumerate(room) if free >= counts[i]), len(rows))
        if k == most_rows:
            break
        if k == len(rows):
            rows.append([])
            room.append(length)
        rows[k].append(i)
        room[k] -= counts[i]
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
