"""Which inputs share a forward pass, and which of those share a row: pure functions of token counts.

An encoder computes rectangles of tokens. Texts of unlike length leave padding in them, unless several short ones stand
one after another in a row, each seeing only itself ("row packing").
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

Row = list[int]
"""Positions of the inputs that share a row, in the order in which they stand there."""
Pass = list[Row]
"""The rows of one forward pass."""

# Measured on hidden sizes 384 and 1024: what a pass and a row cost before their first token.
_PASS_TOKENS = 20
_ROW_TOKENS = 1
_SHARED_SPEED = 0.9  # of a pass that takes all threads, next to as many passes of one thread each
_DEALT_PER_TOKEN = 2
_LEAST_WIDTHS = (1, 32, 64, 128, 256, 512)


@dataclass(frozen=True)
class Policy:
    """How an encoder likes its passes.

    Attributes:
        max_tokens: Tokens of a pass, padding included; a longer row gets a pass alone.
        packs_rows: Whether several inputs may share a row.
        lanes: Passes that it can run side by side, one thread each. A single pass always gets all threads.
        hidden: Its hidden size. Of a layer's operations on a token 24 hidden^2 do not depend on the row's length, and
            4 hidden * length do (arXiv:2001.08361, section 2.1).
        deals_out: Whether hidden states of shared rows are laid out again, a row for each input, all as long as the
            longest: then a long input shares its row with few.
    """

    max_tokens: int
    packs_rows: bool = False
    lanes: int = 1
    hidden: int = 768
    deals_out: bool = False


def plan(counts: Sequence[int], policy: Policy) -> list[Pass]:
    """Spread inputs over passes such that computing them takes the least time.

    Args:
        counts: Tokens of each input, each at least 1.
        policy: How the encoder likes it.

    Returns:
        The passes, the longest rows first; every position in `counts` stands in exactly one row.
    """
    if not counts:
        return []
    rounds = math.ceil(sum(counts) / (policy.lanes * policy.max_tokens))
    even_share = math.ceil(sum(counts) / (policy.lanes * rounds))
    plans = [
        _passes(rows, counts, max_tokens)
        for rows in _ways_to_fill_rows(counts, policy)
        for max_tokens in sorted({policy.max_tokens, even_share}, reverse=True)
    ]
    return min(plans, key=lambda passes: _duration(passes, counts, policy))


def width(tokens: int) -> int:
    """The length that a row of so many tokens is padded to.

    An engine prepares itself anew for each shape of a pass, which costs as much as many tokens, so it must meet few.
    """
    step = 8
    while tokens > 8 * step:
        step *= 2
    return math.ceil(tokens / step) * step


def cost(rows: Pass, counts: Sequence[int], hidden: int) -> float:
    """What a pass costs, in units of one token without attention."""
    length = _width(rows, counts)
    return _PASS_TOKENS + len(rows) * (_ROW_TOKENS + length * (1 + length / (6 * hidden)))


def _width(rows: Pass, counts: Sequence[int]) -> int:
    return width(max(_tokens(row, counts) for row in rows))


def _tokens(row: Row, counts: Sequence[int]) -> int:
    return sum(counts[i] for i in row)


def _ways_to_fill_rows(counts: Sequence[int], policy: Policy) -> list[list[Row]]:
    """A row for each input, or shared rows of several widths: wide ones have less padding, but cost more attention."""
    if not policy.packs_rows or len(counts) == 1:
        return [[[i] for i in range(len(counts))]]
    return [_filled_rows(counts, least, policy.deals_out) for least in _LEAST_WIDTHS if least <= policy.max_tokens]


def _filled_rows(counts: Sequence[int], least_width: int, deals_out: bool) -> list[Row]:
    """Begin each row with the longest input left, then add the longest one that still fits, until none does."""
    left = sorted((count, i) for i, count in enumerate(counts))
    rows: list[Row] = []
    while left:
        count, i = left.pop()
        rows.append([i])
        row_width = max(least_width, width(count))
        most = _DEALT_PER_TOKEN * row_width // width(count) if deals_out else len(counts)
        room = row_width - count
        while left and left[0][0] <= room and len(rows[-1]) < most:
            count, i = left.pop(bisect_right(left, (room, len(counts))) - 1)
            rows[-1].append(i)
            room -= count
    return rows


def _passes(rows: Sequence[Row], counts: Sequence[int], max_tokens: int) -> list[Pass]:
    """Put rows of like length into a pass: they need little padding."""
    passes: list[Pass] = []
    room = 0
    for row in sorted(rows, key=lambda row: _tokens(row, counts), reverse=True):
        if room == 0:
            passes.append([])
            room = max(1, max_tokens // width(_tokens(row, counts)))  # no later row of the pass is longer
        passes[-1].append(row)
        room -= 1
    return passes


def _duration(passes: Sequence[Pass], counts: Sequence[int], policy: Policy) -> float:
    """How long the passes take: a single one shares its work among all threads, several are dealt to the lanes."""
    costs = [cost(rows, counts, policy.hidden) for rows in passes]
    if len(costs) == 1 and policy.lanes > 1:
        return costs[0] / (policy.lanes * _SHARED_SPEED)
    busy = [0.0] * policy.lanes
    for one in costs:
        busy[busy.index(min(busy))] += one
    return max(busy)
