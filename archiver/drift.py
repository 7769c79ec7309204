"""How far the answers of an archive are from those of the packed model in float32 on PyTorch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from marvec import agreement
from marvec.classifier import Classifier
from marvec.embedder import Embedder
from marvec.model import Model
from marvec.pooling import finish
from marvec.tokens import Tokens

FILE = "drift.json"
_RIGHT = 0.5


@dataclass(frozen=True)
class Drift:
    """What a change of engine or precision does to answers.

    Attributes:
        what: What the answers are.
        inputs: How many inputs it was measured on.
        dtype: What the encoder computed in when it was measured.
        largest_difference: Of any number in an answer.
    """

    what: ClassVar[str]
    inputs: int
    dtype: str
    largest_difference: float

    @property
    def told(self) -> str:
        """The figures that say whether the answers are still of use."""
        raise NotImplementedError

    def to_mapping(self) -> dict[str, float | str]:
        """Plain values, the numbers rounded for people."""
        values = asdict(self).items()
        return {key: float(f"{value:.6g}") if isinstance(value, float) else value for key, value in values}

    def save(self, staged: Path) -> None:
        """Write drift.json into an archive's tree, from where a worker tells it."""
        (staged / FILE).write_text(json.dumps(self.to_mapping()), encoding="utf-8")


@dataclass(frozen=True)
class VectorDrift(Drift):
    """That of vectors of unit length.

    Attributes:
        mean_cosine: Between a vector and its reference.
        worst_cosine: The smallest of them.
        rank_correlation: Spearman's, between the similarities of all pairs of inputs.
    """

    what: ClassVar[str] = "vectors"
    mean_cosine: float
    worst_cosine: float
    rank_correlation: float

    @property
    def told(self) -> str:
        """The figures that say whether a search still works."""
        return (
            f"mean cosine {self.mean_cosine:.4f}, worst {self.worst_cosine:.4f}, rank correlation "
            f"{self.rank_correlation:.4f}"
        )


@dataclass(frozen=True)
class ScoreDrift(Drift):
    """That of scores; of a regression's numbers in parts of a number over 1.

    Attributes:
        mean_difference: Of all scores.
        same_label: The share of inputs that keep their best label, or, where each label is right or not, all labels on
            their side of 0.5. A regression has none, so that they all do.
    """

    what: ClassVar[str] = "scores"
    mean_difference: float
    same_label: float

    @property
    def told(self) -> str:
        """The figures that say whether the labels are still right."""
        return f"same label {self.same_label:.1%}, mean difference of a score {self.mean_difference:.4f}"


def between(reference: Model, candidate: Model, inputs: Sequence[Tokens]) -> VectorDrift | ScoreDrift:
    """Answer inputs with both, and compare.

    Args:
        reference: What the answers should be.
        candidate: What they are; of the same task.
        inputs: None is empty.
    """
    right, found, dtype = reference.compute(inputs), candidate.compute(inputs), candidate.encoder.dtype
    if isinstance(reference, Classifier):
        problem_type = reference.settings.model.problem_type
        return of_scores(reference.finished(right), reference.finished(found), problem_type, dtype)
    if isinstance(reference, Embedder):
        dimension = reference.settings.model.served_dimension
        return of_vectors(finish(right, dimension, normalize=True), finish(found, dimension, normalize=True), dtype)
    raise TypeError(f"nothing is known of the answers of {type(reference).__name__}")


def of_vectors(reference: Tensor, vectors: Tensor, dtype: str = "float32") -> VectorDrift:
    """Compare vectors with those that they should be.

    Args:
        reference: [inputs, dimension] float32.
        vectors: [inputs, dimension] float32, of the same inputs.
        dtype: What the vectors were computed in.
    """
    cosines = cosine_similarity(reference.double(), vectors.double())
    return VectorDrift(
        inputs=len(reference),
        dtype=dtype,
        largest_difference=float((reference - vectors).abs().max()),
        mean_cosine=float(cosines.mean()),
        worst_cosine=float(cosines.min()),
        rank_correlation=_spearman(_similarities(reference), _similarities(vectors)),
    )


def of_scores(reference: Tensor, scores: Tensor, problem_type: str, dtype: str = "float32") -> ScoreDrift:
    """Compare scores with those that they should be.

    Args:
        reference: [inputs, labels] float32.
        scores: [inputs, labels] float32, of the same inputs.
        problem_type: One of settings.PROBLEM_TYPES.
        dtype: What the scores were computed in.
    """
    differences = agreement.differences(reference, scores)
    same = (_decisions(reference, problem_type) == _decisions(scores, problem_type)).all(dim=1)
    return ScoreDrift(
        inputs=len(reference),
        dtype=dtype,
        largest_difference=float(differences.max()),
        mean_difference=float(differences.mean()),
        same_label=float(same.double().mean()),
    )


def _decisions(scores: Tensor, problem_type: str) -> Tensor:
    """What a caller would make of scores: [inputs, decisions]."""
    if problem_type == "single_label_classification":
        return scores.argmax(dim=1, keepdim=True)
    return scores >= _RIGHT if problem_type == "multi_label_classification" else torch.ones_like(scores)


def _similarities(vectors: Tensor) -> Tensor:
    """The cosine of each pair of inputs: [pairs] float64."""
    units = torch.nn.functional.normalize(vectors.double(), dim=1)
    first, second = torch.triu_indices(len(vectors), len(vectors), offset=1)
    return (units @ units.T)[first, second]


def _spearman(left: Tensor, right: Tensor) -> float:
    ranks = torch.stack([values.argsort().argsort().double() for values in (left, right)])
    return float(torch.corrcoef(ranks)[0, 1])
