"""The pipeline: token ids -> logits -> scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from marvec import classification_request
from marvec.classification_request import ClassificationRequest
from marvec.model import Model, load_parts
from marvec.scores import scores
from marvec.settings import ClassificationSettings


@dataclass(frozen=True)
class Classifier(Model):
    """A loaded model that gives labels. `load` makes one from the `model/` folder of an archive."""

    settings: ClassificationSettings

    @classmethod
    def load(cls, folder: Path, settings: ClassificationSettings, device: str = "cpu") -> Classifier:
        """Load tokenizer and encoder, which has the head in it.

        Args:
            folder: Holds config.json, weights or a graph, and tokenizer.json.
            settings: From model-config.yaml.
            device: "cpu" or "cuda:N".

        Raises:
            ConfigurationError: When a file is missing or does not fit the others.
        """
        tokenizer, encoder = load_parts(folder, settings, device)
        classifier = cls(settings, tokenizer, encoder)
        classifier.require_width(folder, "the count of model.labels")
        return classifier

    @property
    def width(self) -> int:
        """Outputs of the head."""
        return len(self.settings.model.labels)

    def parse(self, body: object, query: Mapping[str, str], path: str) -> ClassificationRequest:
        """Read a request for labels."""
        return classification_request.parse(body, self.settings, query, path)

    def numbers_of(self, output: Tensor, counts: Sequence[int]) -> Tensor:
        """The encoder's logits, [inputs, labels] float32, are the numbers."""
        return output

    def finished(self, numbers: Tensor) -> Tensor:
        """The score of each label: [inputs, labels] float32."""
        return scores(numbers, self.settings.model.problem_type)
