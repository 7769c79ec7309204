"""How far the vectors of an archive are from those of the packed model in float32 on PyTorch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from marvec.embedder import Embedder
from marvec.pooling import finish
from marvec.tokens import Tokens

FILE = "drift.json"


@dataclass(frozen=True)
class Drift:
    """What a change of engine or precision does to vectors.

    Attributes:
        inputs: How many inputs it was measured on.
        largest_difference: Of any number in a vector.
        mean_cosine: Between a vector and its reference.
        worst_cosine: The smallest of them.
        rank_correlation: Spearman's, between the similarities of all pairs of inputs.
        dtype: What the encoder computed in when it was measured.
    """

    inputs: int
    largest_difference: float
    mean_cosine: float
    worst_cosine: float
    rank_correlation: float
    dtype: str = "float32"

    def to_mapping(self) -> dict[str, float | str]:
        """Plain values, the numbers rounded for people."""
        values = asdict(self).items()
        return {key: float(f"{value:.6g}") if isinstance(value, float) else value for key, value in values}

    def save(self, staged: Path) -> None:
        """Write drift.json into an archive's tree, from where a worker tells it."""
        (staged / FILE).write_text(json.dumps(self.to_mapping()), encoding="utf-8")


def between(reference: Embedder, candidate: Embedder, inputs: Sequence[Tokens]) -> Drift:
    """Embed inputs with both, to unit length, and compare.

    Args:
        reference: What the vectors should be.
        candidate: What they are.
        inputs: None is empty.
    """
    dimension = reference.settings.model.served_dimension
    vectors = [finish(one.embed(inputs), dimension, normalize=True) for one in (reference, candidate)]
    return replace(measure(*vectors), dtype=candidate.encoder.dtype)


def measure(reference: Tensor, vectors: Tensor) -> Drift:
    """Compare vectors with those that they should be.

    Args:
        reference: [inputs, dimension] float32.
        vectors: [inputs, dimension] float32, of the same inputs.
    """
    cosines = cosine_similarity(reference.double(), vectors.double())
    return Drift(
        inputs=len(reference),
        largest_difference=float((reference - vectors).abs().max()),
        mean_cosine=float(cosines.mean()),
        worst_cosine=float(cosines.min()),
        rank_correlation=_spearman(_similarities(reference), _similarities(vectors)),
    )


def _similarities(vectors: Tensor) -> Tensor:
    """The cosine of each pair of inputs: [pairs] float64."""
    units = torch.nn.functional.normalize(vectors.double(), dim=1)
    first, second = torch.triu_indices(len(vectors), len(vectors), offset=1)
    return (units @ units.T)[first, second]


def _spearman(left: Tensor, right: Tensor) -> float:
    ranks = torch.stack([values.argsort().argsort().double() for values in (left, right)])
    return float(torch.corrcoef(ranks)[0, 1])
