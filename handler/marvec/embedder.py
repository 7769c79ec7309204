"""The pipeline: token ids -> hidden states -> pooled vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from marvec import embedding_request
from marvec.dense import Dense
from marvec.embedding_request import EmbeddingRequest
from marvec.model import Model, load_parts
from marvec.pooling import finish, pool
from marvec.settings import EmbeddingSettings


@dataclass(frozen=True)
class Embedder(Model):
    """A loaded model that gives vectors. `load` makes one from the `model/` folder of an archive."""

    settings: EmbeddingSettings
    dense: Sequence[Dense]

    @classmethod
    def load(cls, folder: Path, settings: EmbeddingSettings, device: str = "cpu") -> Embedder:
        """Load tokenizer, encoder and dense layers.

        Args:
            folder: Holds config.json, weights, tokenizer.json and the folders that `settings.model.dense` names.
            settings: From model-config.yaml.
            device: "cpu" or "cuda:N".

        Raises:
            ConfigurationError: When a file is missing or does not fit the others.
        """
        tokenizer, encoder = load_parts(folder, settings, device)
        dense = [Dense.load(folder / name, encoder.device) for name in settings.model.dense]
        embedder = cls(settings, tokenizer, encoder, dense)
        embedder.require_width(folder, "model.dimension")
        return embedder

    @property
    def width(self) -> int:
        """Numbers in a vector before any truncation."""
        return self.settings.model.dimension

    def parse(self, body: object, query: Mapping[str, str], path: str) -> EmbeddingRequest:
        """Read a request for vectors."""
        return embedding_request.parse(body, self.settings, query, path)

    @torch.inference_mode()
    def numbers_of(self, output: Tensor, counts: Sequence[int]) -> Tensor:
        """What comes after the transformer: [tokens, hidden] -> [texts, dimension] float32 on the encoder's device."""
        vectors = pool(output, counts, self.settings.model.pooling)
        for layer in self.dense:
            vectors = layer(vectors)
        return vectors

    def finished(self, numbers: Tensor) -> Tensor:
        """Truncate and normalize as the settings say: [texts, dimension] -> [texts, served_dimension] float32."""
        return finish(numbers, self.settings.model.served_dimension, self.settings.model.normalize)
