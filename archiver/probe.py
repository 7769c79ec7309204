"""What a finished archive is asked, and what its worker must answer."""

from __future__ import annotations

import json
from dataclasses import dataclass

import torch

from archiver.errors import PackError
from marvec import agreement, prompts
from marvec.errors import SelfTestError
from marvec.model import Model
from marvec.settings import ClassificationSettings, EmbeddingSettings, Settings

_TEXT = "A farmer who grows roses one can eat: 日本の薔薇農家."


@dataclass(frozen=True)
class Probe:
    """A text, and what a request for it must get.

    Attributes:
        text: What to send.
        answer: [numbers] float32: the vector, or the score of each label.
    """

    text: str
    answer: list[float]

    def require(self, predictions: str, settings: Settings, dtype: str) -> None:
        """Compare a worker's answer with what it should be.

        Args:
            predictions: The body that it sent.
            settings: The archive's.
            dtype: What the worker computed in.

        Raises:
            PackError: When it is another one.
        """
        try:
            (prediction,) = json.loads(predictions)["predictions"]
            given = self._numbers(prediction, settings)
        except (ValueError, KeyError, TypeError) as err:
            raise PackError(f"the answer holds no prediction: {predictions[:200]}") from err
        try:
            agreement.require(settings, torch.tensor([self.answer]), torch.tensor([given]), dtype)
        except SelfTestError as err:
            raise PackError(f"a worker gives another answer than the packed model: {err}") from err

    def _numbers(self, prediction: object, settings: Settings) -> list[float]:
        """A prediction as numbers to compare; a label's score takes its place among those that are expected."""
        if isinstance(settings, ClassificationSettings) and not settings.model.regression:
            return self._with_best(prediction, settings)
        numbers: list[object] = prediction if isinstance(prediction, list) else [prediction]
        return [float(str(number)) for number in numbers]

    def _with_best(self, prediction: object, settings: ClassificationSettings) -> list[float]:
        numbers = list(self.answer)
        label = prediction["label"] if isinstance(prediction, dict) else str(prediction)
        score = float(prediction["score"]) if isinstance(prediction, dict) else max(self.answer)
        labelled = [i for i, name in enumerate(settings.model.labels) if name == label]  # several may share a label
        if not labelled:
            raise ValueError(f"unknown label {label!r}")
        numbers[max(labelled, key=self.answer.__getitem__)] = score
        return numbers


def record(model: Model) -> Probe:
    """Ask the packed model what a worker will be asked."""
    settings = model.settings
    prompt = prompts.default(settings.model) if isinstance(settings, EmbeddingSettings) else ""
    return Probe(_TEXT, model.answer_texts([prompt + _TEXT])[0].tolist())
