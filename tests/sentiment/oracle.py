"""transformers' own text-classification pipeline on a source directory: what scores must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from transformers import pipeline

MOST_DIFFERENCE = 1e-5

Scores = Mapping[str, float]


class Oracle:
    """Asks one input at a time, so that nothing stands beside it; texts that are too long are cut."""

    def __init__(self, directory: Path) -> None:
        self._pipeline = pipeline("text-classification", model=str(directory), device="cpu", dtype=torch.float32)

    def scores(self, inputs: Sequence[object]) -> list[Scores]:
        """Return the score of each label of each input, a text or {"text", "text_pair"}."""
        found = [self._pipeline(one, top_k=None, truncation=True) for one in inputs]
        return [{item["label"]: item["score"] for item in one} for one in found]


def require_equal(given: Sequence[Scores], expected: Sequence[Scores]) -> None:
    """Compare scores: the same labels, and no difference over 1e-5.

    Raises:
        AssertionError: When an input differs; the message names it.
    """
    if len(given) != len(expected):
        raise AssertionError(f"{len(given)} answers to {len(expected)} inputs")
    for place, (ours, theirs) in enumerate(zip(given, expected, strict=True)):
        if ours.keys() != theirs.keys():
            raise AssertionError(f"input {place}: labels {sorted(ours)}, expected {sorted(theirs)}")
        worst = max(abs(ours[label] - theirs[label]) for label in ours)
        if worst > MOST_DIFFERENCE:
            raise AssertionError(f"input {place}: a score differs by {worst:.1e}")
