"""Which inputs share a forward pass: pure functions of token counts."""

from __future__ import annotations

from collections.abc import Sequence


def plan(counts: Sequence[int], max_batch_tokens: int) -> list[list[int]]:
    """Group inputs of like length under a budget of padded tokens.

    Sorted by length, neighbours need little padding; the budget keeps a pass small enough for the processor's cache.

    Args:
        counts: Tokens of each input.
        max_batch_tokens: Most tokens, padding included, of one batch. An input longer than that gets a batch alone.

    Returns:
        Batches of positions in `counts`, longest inputs first; every position stands in exactly one.
    """
    batches: list[list[int]] = []
    room = 0
    for position in sorted(range(len(counts)), key=lambda i: counts[i], reverse=True):
        if room == 0:
            batches.append([])
            room = max(1, max_batch_tokens // max(1, counts[position]))  # no later input of the batch is longer
        batches[-1].append(position)
        room -= 1
    return batches
