"""Golden scores: every label must be there, and each score, or number of a regression, near its twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from vertex.errors import OperationError
from vertex.golden import Golden


@dataclass(frozen=True)
class GoldenScores(Golden):
    """What an archive of a classifier recorded, and how exactly it is to be met.

    Attributes:
        labels: The label of each column.
        scores: [texts, labels] float32; a regression's numbers where `regression` is true.
        regression: Whether answers are numbers, in the order of the labels.
        most_difference: Of a score to its twin; in parts of a regression's number where that is over 1.
    """

    labels: Sequence[str]
    scores: npt.NDArray[np.float32]
    regression: bool
    most_difference: float
    # A regression takes these two as well. An archive may have been packed with --output label.
    parameters: ClassVar[Mapping[str, object]] = {"scores": "all", "output": "score"}
    figure: ClassVar[str] = "largest difference"

    @property
    def instances(self) -> list[object]:
        """The texts themselves."""
        return list(self.texts)

    def require(self, predictions: Sequence[object]) -> float:
        """Compare scores by their labels; returns the largest difference."""
        if len(predictions) != len(self.texts):
            raise OperationError(f"{len(self.texts)} golden texts, and {len(predictions)} predictions of the endpoint")
        scores = np.array([self._read(prediction) for prediction in predictions], dtype=np.float64)
        golden = np.array([self._in_order(row) for row in self.scores.tolist()], dtype=np.float64)
        difference = float((np.abs(scores - golden) / np.maximum(np.abs(golden), 1)).max())
        if not difference <= self.most_difference:  # a NaN is neither
            raise OperationError(
                f"the largest difference to the golden scores is {difference:.6f}, allowed is {self.most_difference}"
            )
        return difference

    def _read(self, prediction: object) -> list[float]:
        """The scores of a prediction, which lists them from the best on, in the order of `_in_order`."""
        try:
            if self.regression:
                return _numbers(prediction, len(self.labels))
            if not isinstance(prediction, list):
                raise TypeError(f"expected a list, got {type(prediction).__name__}")
            given = sorted(_labelled(item) for item in prediction)
        except (KeyError, TypeError, ValueError) as err:
            raise OperationError(
                f"the endpoint's predictions are no scores ({err}): is it a model of marvec's?"
            ) from err
        names = [name for name, _ in given]
        if names != sorted(self.labels):
            raise OperationError(f"the archive has the labels {_listed(self.labels)}, the endpoint {_listed(names)}")
        return [score for _, score in given]

    def _in_order(self, row: list[float]) -> list[float]:
        """By label, and by score where several outputs share one; a regression's as they are."""
        if self.regression:
            return row
        return [score for _, score in sorted(zip(self.labels, row, strict=True))]


def _labelled(item: object) -> tuple[str, float]:
    if not isinstance(item, Mapping):
        raise TypeError(f"expected an object with label and score, got {type(item).__name__}")
    return str(item["label"]), float(item["score"])


def _numbers(prediction: object, count: int) -> list[float]:
    listed = prediction if isinstance(prediction, list) else [prediction]
    numbers = [number for number in listed if isinstance(number, float)]
    if not len(numbers) == len(listed) == count:
        raise TypeError("expected a number" if count == 1 else f"expected {count} numbers")
    return numbers


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(sorted(labels))
