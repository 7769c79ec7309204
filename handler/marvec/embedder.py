"""The pipeline: token ids -> hidden states -> pooled vectors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from marvec import batching, encoder
from marvec.dense import Dense
from marvec.encoder import Encoder
from marvec.errors import ModelDirError
from marvec.pooling import finish, pool
from marvec.settings import Settings
from marvec.tokens import TextTokenizer, Tokens

_SPEED_PROBE_TOKENS = 128
_SPEED_PROBES = 3  # fewer of a large model: its self-test has warmed it up
_SPEED_PROBE_BUDGET_S = 0.3


@dataclass(frozen=True)
class Embedder:
    """A loaded model. `load` makes one from the `model/` folder of an archive."""

    settings: Settings
    tokenizer: TextTokenizer
    encoder: Encoder
    dense: Sequence[Dense]

    @classmethod
    def load(cls, folder: Path, settings: Settings, device: str = "cpu") -> Embedder:
        """Load tokenizer, encoder and dense layers.

        Args:
            folder: Holds config.json, weights, tokenizer.json and the folders that `settings.model.dense` names.
            settings: From model-config.yaml.
            device: "cpu" or "cuda:N".

        Raises:
            ConfigurationError: When a file is missing or does not fit the others.
        """
        with ThreadPoolExecutor(1) as other:  # tokenizers of many languages take as long as the encoder
            loading = other.submit(encoder.load, folder, settings.engine, device)
            tokenizer = TextTokenizer.load(folder / "tokenizer.json", settings.model.max_length)
        loaded = loading.result()
        embedder = cls(
            settings=settings,
            tokenizer=tokenizer,
            encoder=loaded,
            dense=[Dense.load(folder / name, loaded.device) for name in settings.model.dense],
        )
        (ids,) = embedder.tokenizer.encode(["a"])
        (hidden,) = embedder.encoder.encode([[[ids.ids]]])
        dimension = embedder._pooled(hidden, [len(ids.ids)]).shape[1]
        if dimension != settings.model.dimension:
            raise ModelDirError(f"{folder}: gives {dimension} numbers, model.dimension says {settings.model.dimension}")
        return embedder

    def embed(self, inputs: Sequence[Tokens]) -> Tensor:
        """Compute the vectors of some inputs, in their order, batched by length.

        Returns:
            [inputs, dimension] float32 on the CPU, neither truncated nor normalized.
        """
        counts = [len(item.ids) for item in inputs]
        passes = batching.plan(counts, self.encoder.policy)
        rows = [[[inputs[i].ids for i in row] for row in one] for one in passes]
        vectors = torch.empty(len(inputs), self.settings.model.dimension)
        for one, hidden in zip(passes, self.encoder.encode(rows)):
            order = [i for row in one for i in row]
            vectors[order] = self._pooled(hidden, [counts[i] for i in order]).cpu()
        return vectors

    def embed_texts(self, texts: Sequence[str]) -> Tensor:
        """Tokenize and embed texts as the settings say, without a prompt: [texts, served_dimension] float32."""
        vectors = self.embed(self.tokenizer.encode(texts))
        return finish(vectors, self.settings.model.served_dimension, self.settings.model.normalize)

    @torch.inference_mode()
    def _pooled(self, hidden: Tensor, counts: Sequence[int]) -> Tensor:
        """What comes after the transformer: [tokens, hidden] -> [texts, dimension] float32 on the encoder's device."""
        vectors = pool(hidden, counts, self.settings.model.pooling)
        for layer in self.dense:
            vectors = layer(vectors)
        return vectors

    def tokens_per_s(self) -> float:
        """The speed on inputs of the greatest length, from a few passes over a shorter one.

        Attention costs more per token the longer an input is: of a layer's operations per token, about 24 hidden^2 do
        not depend on the length, and 4 hidden * length do (arXiv:2001.08361, section 2.1).
        """
        length = min(self.tokenizer.max_length, _SPEED_PROBE_TOKENS)
        ids = self.tokenizer.encode(["a " * length])[0].ids
        seconds: list[float] = []
        while len(seconds) < _SPEED_PROBES and sum(seconds) < _SPEED_PROBE_BUDGET_S:
            started = time.perf_counter()
            (hidden,) = self.encoder.encode([[[ids]]])
            hidden[0, 0].item()  # waits for a GPU
            seconds.append(time.perf_counter() - started)
        width = hidden.shape[1]
        dearer = (6 * width + self.tokenizer.max_length) / (6 * width + len(ids))
        return len(ids) / min(seconds) / dearer
