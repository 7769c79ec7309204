"""Scores -> the bytes of a response. Scores are float32 in shortest form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from marvec.classification_parameters import ClassificationParameters
from marvec.response import dumps
from marvec.settings import ClassificationModel

_BYTES_PER_NUMBER = 14  # "-0.012345678," and a little
_BYTES_PER_LABEL = 24  # {"label":…,"score":…},
_BYTES_PER_PREDICTION = 4

Scores = npt.NDArray[np.float32]


def size_bytes(inputs: int, parameters: ClassificationParameters, model: ClassificationModel) -> int:
    """The most that the predictions for so many inputs can take."""
    longest = max(len(dumps(label)) for label in model.labels)
    labels = len(model.labels) if model.regression else parameters.most
    return inputs * (labels * (longest + _BYTES_PER_LABEL + _BYTES_PER_NUMBER) + _BYTES_PER_PREDICTION)


def regression(numbers: Scores) -> bytes:
    """The answer of a regression: a number for each input, or a list where the model has several outputs.

    Args:
        numbers: [inputs, outputs] float32, finite.
    """
    single = numbers.shape[1] == 1
    return dumps({"predictions": [row[0] if single else row for row in numbers]})


def labels(scores: Scores, parameters: ClassificationParameters, names: Sequence[str]) -> bytes:
    """The answer of a classifier: for each input its best label, or those that were asked for, the best first.

    Args:
        scores: [inputs, labels] float32, finite.
        parameters: Which labels, with their scores or without.
        names: The label of each column.
    """
    predictions: list[object] = []
    for row in scores:
        order = np.argsort(-row, kind="stable")[: parameters.most]
        chosen = [
            names[i] if parameters.output == "label" else {"label": names[i], "score": row[i]}
            for i in order
            if parameters.threshold is None or row[i] >= parameters.threshold
        ]
        predictions.append(chosen if parameters.several else chosen[0])
    return dumps({"predictions": predictions})
