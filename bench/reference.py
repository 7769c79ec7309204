"""The right answer: the vectors that sentence-transformers computes, and how near a system comes to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

LEAST_COSINE = 0.99


@dataclass(frozen=True)
class Agreement:
    """Cosines between a system's vectors and the reference.

    Attributes:
        mean: Over the texts.
        least: The worst text's.
    """

    mean: float
    least: float


def reference(folder: Path, texts: Sequence[str]) -> list[list[float]]:
    """Embed some texts with sentence-transformers, in a process of its own so that none of its memory stays here.

    Args:
        folder: A sentence-transformers directory.
        texts: Some texts.

    Returns:
        A vector of each.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_encode, folder, list(texts)).result()


def agreement(vectors: Sequence[Sequence[float]], expected: Sequence[Sequence[float]]) -> Agreement:
    """Compare vectors text by text.

    Raises:
        ValueError: There are more or fewer than expected, or their dimensions differ.
    """
    cosines = [_cosine(one, other) for one, other in zip(vectors, expected, strict=True)]
    return Agreement(fmean(cosines), min(cosines))


def _encode(folder: Path, texts: list[str]) -> list[list[float]]:
    import transformers
    from sentence_transformers import SentenceTransformer

    # They would break into the display.
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    vectors: list[list[float]] = SentenceTransformer(str(folder), device="cpu").encode(texts).tolist()
    return vectors


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / (math.hypot(*one) * math.hypot(*other))
