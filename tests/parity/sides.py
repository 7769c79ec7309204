"""The two sides of a comparison: a model directory as Marvec packs and serves it, and as sentence-transformers does.

Ours goes the whole road in this process: the archiver stages the directory, the library loads the staged `model/` with
the settings that the archive would carry, and a request's bytes become a response's bytes. Only the .mar file itself
and TorchServe are left out; tests/pack and tests/contract have those.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from archiver.options import PackOptions
from marvec.embedder import Embedder
from marvec.service import Service
from marvec.settings import EmbeddingSettings
from tests.models.staged import stage
from tests.parity.exports import Exports

Vectors = NDArray[np.float32]

MOST_DIFFERENCE = 1e-5
LEAST_COSINE = 0.99999
_NO_LIMIT_TOKENS = 10_000_000


@dataclass(frozen=True)
class Ours:
    """A staged model, asked as a server asks it.

    Attributes:
        embedder: The loaded model.
        settings: What the archive's model-config.yaml says.
        notes: What pack told the user of its choices.
    """

    embedder: Embedder
    settings: EmbeddingSettings
    notes: tuple[str, ...]

    def vectors(self, instances: Sequence[object], **parameters: object) -> Vectors:
        """Send one request and return its predictions: [instances, dimension] float32."""
        service = Service(self.embedder, {"golden_cosine": 1.0}, capacity_tokens=_NO_LIMIT_TOKENS)
        body = json.dumps({"instances": instances, "parameters": parameters}).encode()
        job = service.read(body, {}, "")
        (result,) = service.compute([job])
        if isinstance(result, Exception):
            raise result
        return np.array(json.loads(service.write(job, result))["predictions"], np.float32)

    def token_ids(self, text: str) -> list[int]:
        """The ids that the model sees of a text, special tokens included."""
        return list(self.embedder.tokenizer.encode([text])[0].ids)


@dataclass(frozen=True)
class Oracle:
    """sentence-transformers on the source directory, in float32, one text at a time: nothing stands beside it."""

    model: SentenceTransformer

    def vectors(
        self,
        texts: Sequence[str],
        *,
        prompt_name: str | None = None,
        dimension: int | None = None,
        normalize: bool = False,
    ) -> Vectors:
        """Encode texts: [texts, dimension] float32."""
        result: Vectors = self.model.encode(
            list(texts),
            batch_size=1,
            prompt_name=prompt_name,
            truncate_dim=dimension,
            normalize_embeddings=normalize,
            show_progress_bar=False,
        )
        return result


@dataclass(frozen=True)
class Sides:
    """Both sides of one model directory."""

    ours: Ours
    oracle: Oracle


def pack(directory: Path, staged: Path, exports: Exports, options: PackOptions) -> Ours:
    """Stage a directory as `marvec pack` does, and load what was staged.

    Args:
        directory: The model, as the user has it.
        staged: A folder to make.
        exports: Has the graphs of the session.
        options: The options of `marvec pack`; its `model` does not matter.
    """
    made = stage(directory, staged, options, exports.install)
    assert isinstance(made.settings, EmbeddingSettings)
    return Ours(Embedder.load(made.folder, made.settings), made.settings, made.notes)


def consult(directory: Path) -> Oracle:
    """Load a directory with sentence-transformers as its users do, but in float32 whatever the checkpoint is in."""
    model = SentenceTransformer(
        str(directory), device="cpu", local_files_only=True, model_kwargs={"dtype": torch.float32}
    )
    return Oracle(model)


def require_equal(given: Vectors, expected: Vectors, labels: Sequence[str]) -> None:
    """Compare vectors row by row: difference at most 1e-5, cosine at least 0.99999.

    Raises:
        AssertionError: When a row differs; the message names the worst one.
    """
    if given.shape != expected.shape or len(labels) != len(given):
        raise AssertionError(f"shapes {given.shape} and {expected.shape}, {len(labels)} labels")
    if not np.isfinite(given).all():
        raise AssertionError("a number is not finite")
    differences = np.abs(given.astype(np.float64) - expected).max(axis=1)
    norms = np.linalg.norm(given.astype(np.float64), axis=1) * np.linalg.norm(expected.astype(np.float64), axis=1)
    cosines = (given.astype(np.float64) * expected).sum(axis=1) / norms
    worst = int(np.argmax(np.maximum(differences / MOST_DIFFERENCE, (1 - cosines) / (1 - LEAST_COSINE))))
    if differences[worst] > MOST_DIFFERENCE or cosines[worst] < LEAST_COSINE:
        raise AssertionError(
            f"{labels[worst][:60]!a} ({len(labels[worst])} characters, row {worst} of {len(given)}): "
            f"largest difference {differences[worst]:.2e}, cosine {cosines[worst]:.7f}"
        )


def require_parity(sides: Sides, texts: Sequence[str]) -> None:
    """Send all texts in one request and compare each with the oracle's vector of it alone."""
    require_equal(sides.ours.vectors(texts), sides.oracle.vectors(texts), texts)
