"""Vectors recorded when a model was packed, which every worker must reproduce before it serves."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.nn.functional import cosine_similarity

from marvec.embedder import Embedder
from marvec.errors import SelfTestError

_TEXTS = (
    "",
    "query: dummy",
    "The quick brown fox jumps over the lazy dog.",
    "query: 食べられる薔薇を育てている農家は日本に数件しかありません。",
    "Größe, café, naïve, Ελλάδα, Россия, العربية, हिन्दी",
    "emoji 😀 and code: if (x != 0) { return 1 / x; }",
    "a longer passage that fills the model " * 40,
)
LEAST_COSINE = {"float32": 0.9999, "float16": 0.99, "bfloat16": 0.98, "auto": 0.98, "int8": 0.95}


@dataclass(frozen=True)
class Golden:
    """Texts with their token counts and vectors.

    Attributes:
        texts: The inputs.
        token_counts: Tokens of each after truncation.
        vectors: [texts, dimension] float32, as the archive's settings finish them.
    """

    texts: list[str]
    token_counts: list[int]
    vectors: list[list[float]]

    @classmethod
    def load(cls, file: Path) -> Golden:
        """Read golden.json.

        Raises:
            SelfTestError: When the file is missing or damaged.
        """
        try:
            return cls(**json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as err:
            raise SelfTestError(f"{file}: cannot be read; pack the model again: {err}") from err

    def save(self, file: Path) -> None:
        """Write golden.json."""
        file.write_text(json.dumps(asdict(self), ensure_ascii=False), encoding="utf-8")

    def check(self, embedder: Embedder) -> float:
        """Embed the texts again and compare.

        Returns:
            The smallest cosine between a recorded vector and its twin.

        Raises:
            SelfTestError: When a vector is not finite, a token count differs, or a cosine is too small for the dtype.
        """
        tokens = embedder.tokenizer.encode(self.texts)
        counts = [len(item.ids) for item in tokens]
        if counts != self.token_counts:
            raise SelfTestError(f"the tokenizer gives {counts} tokens for the golden texts, not {self.token_counts}")
        vectors = embedder.embed_texts(self.texts)
        if not torch.isfinite(vectors).all():
            raise SelfTestError("a golden text's vector has a number that is not finite")
        recorded = torch.tensor(self.vectors)
        if recorded.shape != vectors.shape:
            raise SelfTestError(f"vectors have shape {list(vectors.shape)}, the recorded ones {list(recorded.shape)}")
        cosine = float(cosine_similarity(vectors, recorded).min())
        least = LEAST_COSINE[embedder.encoder.dtype]
        if not cosine >= least:  # a NaN is neither
            raise SelfTestError(f"smallest cosine to the golden vectors is {cosine:.6f}, allowed is {least} and above")
        return cosine


def record(embedder: Embedder) -> Golden:
    """Embed the golden texts with a freshly packed model.

    Raises:
        SelfTestError: When a vector is not finite.
    """
    tokens = embedder.tokenizer.encode(_TEXTS)
    texts = [text for text, item in zip(_TEXTS, tokens) if item.ids]  # a tokenizer may make nothing of ""
    vectors = embedder.embed_texts(texts)
    if not torch.isfinite(vectors).all():
        raise SelfTestError("a golden text's vector has a number that is not finite")
    return Golden(texts, [len(item.ids) for item in tokens if item.ids], vectors.tolist())
