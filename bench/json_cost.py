"""What JSON costs: the same answers as decimal numbers and as base64 of the numbers' bytes."""

from __future__ import annotations

from collections.abc import Sequence

from bench.load import Load
from bench.result import Sample
from bench.summary import cells
from bench.systems.marvec import Marvec

LOADS = (Load(1, 1), Load(4, 32), Load(1, 256))
SUFFIX = "-base64"
VARIANTS = (
    Marvec("marvec-float32", "Marvec, float32"),
    Marvec("marvec-float32-base64", "Marvec, float32, base64 answers", encoding="base64"),
)


def shares(samples: Sequence[Sample]) -> dict[tuple[str, str, str], float]:
    """The share of a request's median time that decimal numbers cost over base64.

    Args:
        samples: Of both variants.

    Returns:
        (model, system, load) -> share; less than 0 where base64 was the slower one.
    """
    found = {(cell.model, cell.system, cell.load): cell.p50_s for cell in cells(samples) if cell.texts_per_s}
    return {
        (model, system, load): 1 - found[model, system + SUFFIX, load] / p50_s
        for (model, system, load), p50_s in found.items()
        if (model, system + SUFFIX, load) in found
    }
