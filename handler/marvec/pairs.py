"""Which tokens of a pair of texts fit a model: the longer text loses its end first (transformers' "longest_first")."""

from __future__ import annotations

from collections.abc import Sequence


def kept(sequences: Sequence[int | None], max_length: int) -> list[int]:
    """Choose the tokens that stay.

    Args:
        sequences: For each token the text that it is of, 0 or 1; None for special tokens, which all stay.
        max_length: Tokens that may stay.

    Returns:
        Their places, in order.
    """
    counts = [sequences.count(text) for text in range(2)]
    left = list(counts)
    if len(sequences) > max_length:
        left = list(_longest_first(counts[0], counts[1], max(0, max_length - sequences.count(None))))
    places: list[int] = []
    for place, text in enumerate(sequences):
        if text is not None:
            left[text] -= 1
        if text is None or left[text] >= 0:
            places.append(place)
    return places


def _longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens of each text stay, as in the tokenizers library (src/utils/truncation.rs)."""
    short, long = sorted((first, second))
    long = short if short > room else max(short, room - short)
    if short + long > room:
        short = room // 2
        long = room - short
    return (short, long) if first <= second else (long, short)
