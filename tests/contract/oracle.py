"""What an archive's vectors must be: its own model, embedded in this process without any server."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import yaml

from marvec.embedder import Embedder
from marvec.golden import Golden
from marvec.settings import EmbeddingSettings, read_settings

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Oracle:
    """An archive's model in this process.

    Attributes:
        embedder: The model.
        golden: The vectors recorded when it was packed.
    """

    embedder: Embedder
    golden: Golden

    @classmethod
    def load(cls, archive: Path, folder: Path) -> Oracle:
        """Unpack an archive into an empty folder and load it."""
        with zipfile.ZipFile(archive) as content:
            content.extractall(folder)
        config = yaml.safe_load((folder / "model-config.yaml").read_text(encoding="utf-8"))
        settings = read_settings(config["handler"])
        assert isinstance(settings, EmbeddingSettings)
        return cls(Embedder.load(folder / "model", settings), Golden.load(folder / "golden.json"))

    def vectors(self, *texts: str) -> Vectors:
        """Return the vectors of some texts as the archive's settings finish them: [texts, dimension]."""
        vectors: Vectors = self.embedder.answer_texts(texts).numpy()
        return vectors

    def raw_vectors(self, *texts: str) -> Vectors:
        """Return the vectors of some texts before normalization: [texts, dimension]."""
        vectors: Vectors = self.embedder.compute(self.embedder.tokenizer.encode(texts)).numpy()
        return vectors

    def ids(self, text: str) -> list[int]:
        """Return a text's token ids, special tokens included."""
        return list(self.embedder.tokenizer.encode([text])[0].ids)

    def token_count(self, *texts: str) -> int:
        """Return the tokens of some texts together, after truncation."""
        return sum(len(self.ids(text)) for text in texts)


def unit(vectors: Vectors) -> Vectors:
    """Return the vectors with length 1."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    shortened: Vectors = (vectors / lengths).astype(np.float32)
    return shortened


def assert_same(got: Vectors, wanted: Vectors | Sequence[Vectors]) -> None:
    """Require the same vectors up to the rounding of another order of additions."""
    np.testing.assert_allclose(got, np.asarray(wanted), rtol=0, atol=2e-6)
