"""Answers recorded when a model was packed, which every worker must reproduce before it serves."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from marvec import agreement
from marvec.errors import SelfTestError
from marvec.model import Model

_TEXTS = (
    "",
    "query: dummy",
    "The quick brown fox jumps over the lazy dog.",
    "query: 食べられる薔薇を育てている農家は日本に数件しかありません。",
    "Größe, café, naïve, Ελλάδα, Россия, العربية, हिन्दी",
    "emoji 😀 and code: if (x != 0) { return 1 / x; }",
    "a longer passage that fills the model " * 40,
)


@dataclass(frozen=True)
class Golden:
    """Texts with their token counts and answers.

    Attributes:
        texts: The inputs.
        token_counts: Tokens of each after truncation.
        answers: [texts, numbers] float32, as the archive's settings finish them: vectors, or the score of each label.
    """

    texts: list[str]
    token_counts: list[int]
    answers: list[list[float]]

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

    def check(self, model: Model) -> dict[str, float]:
        """Answer the texts again and compare.

        Returns:
            How near the answers are, by agreement.py.

        Raises:
            SelfTestError: When an answer is not finite, a token count differs, or an answer is too far away.
        """
        tokens = model.tokenizer.encode(self.texts)
        counts = [len(item.ids) for item in tokens]
        if counts != self.token_counts:
            raise SelfTestError(f"the tokenizer gives {counts} tokens for the golden texts, not {self.token_counts}")
        answers = model.finished(model.compute(tokens))
        return agreement.require(model.settings, torch.tensor(self.answers), answers, model.encoder.dtype)


def record(model: Model) -> Golden:
    """Answer the golden texts with a freshly packed model.

    Raises:
        SelfTestError: When a number is not finite.
    """
    tokens = model.tokenizer.encode(_TEXTS)
    texts = [text for text, item in zip(_TEXTS, tokens) if item.ids]  # a tokenizer may make nothing of ""
    answers = model.answer_texts(texts)
    if not torch.isfinite(answers).all():
        raise SelfTestError("a golden text's answer has a number that is not finite")
    return Golden(texts, [len(item.ids) for item in tokens if item.ids], answers.tolist())
