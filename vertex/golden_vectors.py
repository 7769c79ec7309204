"""Golden vectors: token counts must be the same, lengths 1, and each vector near its twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from vertex.errors import OperationError
from vertex.golden import Golden

_LONGEST_DIFFERENCE_OF_NORM = 1e-3


@dataclass(frozen=True)
class GoldenVectors(Golden):
    """What an archive of an embedding model recorded, and how exactly it is to be met.

    Attributes:
        token_counts: Tokens of each text.
        vectors: [texts, dimension] float32.
        normalized: Whether they have unit length.
        least_cosine: Of a vector to its twin.
    """

    token_counts: Sequence[int]
    vectors: npt.NDArray[np.float32]
    normalized: bool
    least_cosine: float
    # "" names no prompt, since the golden texts are embedded without one.
    parameters: ClassVar[Mapping[str, object]] = {"promptName": ""}
    figure: ClassVar[str] = "smallest cosine"

    @property
    def instances(self) -> list[object]:
        """The texts in the form whose answers tell token counts too."""
        return [{"content": text} for text in self.texts]

    def require(self, predictions: Sequence[object]) -> float:
        """Compare vectors; returns the smallest cosine."""
        vectors, counts = _read(predictions)
        if list(self.token_counts) != counts:
            raise OperationError(
                f"the golden texts have {list(self.token_counts)} tokens, and the endpoint says {counts}"
            )
        if vectors.shape != self.vectors.shape:
            shape = list(self.vectors.shape)
            raise OperationError(f"the golden vectors have the shape {shape}, the endpoint's {list(vectors.shape)}")
        lengths = np.linalg.norm(vectors, axis=1)
        if self.normalized and not np.abs(lengths - 1).max() <= _LONGEST_DIFFERENCE_OF_NORM:
            raise OperationError(f"vectors have lengths from {lengths.min():.4f} to {lengths.max():.4f}: expected 1")
        cosine = float((np.sum(vectors * self.vectors, axis=1) / lengths / np.linalg.norm(self.vectors, axis=1)).min())
        if not cosine >= self.least_cosine:  # a NaN is neither
            raise OperationError(
                f"the smallest cosine to the golden vectors is {cosine:.6f}, allowed is {self.least_cosine} and above"
            )
        return cosine


def _read(predictions: Sequence[object]) -> tuple[npt.NDArray[np.float32], list[int]]:
    vectors: list[list[float]] = []
    counts: list[int] = []
    try:
        for prediction in predictions:
            if not isinstance(prediction, Mapping):
                raise TypeError(f"expected an object, got {type(prediction).__name__}")
            embeddings = prediction["embeddings"]
            vectors.append(embeddings["values"])
            counts.append(int(embeddings["statistics"]["token_count"]))
        return np.array(vectors, dtype=np.float32), counts
    except (KeyError, TypeError, ValueError) as err:
        raise OperationError(
            f"the endpoint's predictions are no embeddings ({err}): is it a model of marvec's?"
        ) from err
