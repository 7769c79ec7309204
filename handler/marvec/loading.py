"""From an archive's settings to the model that they ask for."""

from __future__ import annotations

from pathlib import Path

from marvec.classifier import Classifier
from marvec.embedder import Embedder
from marvec.model import Model
from marvec.settings import ClassificationSettings, EmbeddingSettings, Settings


def load(folder: Path, settings: Settings, device: str = "cpu") -> Model:
    """Load the model of an archive's `model/` folder, whatever its task is.

    Args:
        folder: As Embedder.load and Classifier.load take it.
        settings: From model-config.yaml.
        device: "cpu" or "cuda:N".

    Raises:
        ConfigurationError: When a file is missing or does not fit the others.
    """
    if isinstance(settings, ClassificationSettings):
        return Classifier.load(folder, settings, device)
    if isinstance(settings, EmbeddingSettings):
        return Embedder.load(folder, settings, device)
    raise TypeError(f"no model has settings of the kind {type(settings).__name__}")
