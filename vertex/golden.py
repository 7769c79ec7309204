"""Golden answers: what an archive recorded when it was packed, for an endpoint to meet. Each task has its own kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Golden(ABC):
    """Texts with their answers.

    Attributes:
        texts: What is asked.
        parameters: Those of the request, so that the answers are told as they were recorded.
        figure: What `require` returns, in words.
    """

    texts: Sequence[str]
    parameters: ClassVar[Mapping[str, object]]
    figure: ClassVar[str]

    @property
    @abstractmethod
    def instances(self) -> list[object]:
        """The texts as a request has them."""

    @abstractmethod
    def require(self, predictions: Sequence[object]) -> float:
        """Compare predictions.

        Args:
            predictions: One for each of `instances`, as the SDK gives them: every number is a double.

        Returns:
            How near they are: the number that `figure` names.

        Raises:
            OperationError: They are others; the message says by how much.
        """
