"""The models that are served: the two of demo/, and one of the size that people deploy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from demo.models import MODELS as DEMO_MODELS
from demo.models import fetch

LARGE = "large"
NAMES = (*DEMO_MODELS, LARGE)


@dataclass(frozen=True)
class Model:
    """A sentence-transformers directory.

    Attributes:
        name: As on the command line.
        folder: Where it lies; the name of the folder around it holds a digest of its content.
        language: Which of sentences/ its texts are made from.
        shrink: By how much a request holds fewer texts than its load says, for a model that is slow.
    """

    name: str
    folder: Path
    language: str = "english"
    shrink: int = 1

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(json.loads((self.folder / "config.json").read_text(encoding="utf-8"))["hidden_size"])

    @property
    def tokenizer(self) -> Path:
        """The file that says how texts are cut into tokens."""
        return self.folder / "tokenizer.json"

    @property
    def weight_bytes(self) -> int:
        """The size of its weights."""
        return sum(file.stat().st_size for file in self.folder.glob("*.safetensors"))


def check(name: str) -> None:
    """Make sure that there is such a model.

    Raises:
        ValueError: There is none.
    """
    if name not in NAMES:
        raise ValueError(f"model {name!r} is unknown; the known ones are {', '.join(NAMES)}")


def get(name: str) -> Model:
    """Fetch or make a model.

    Args:
        name: One of NAMES.

    Raises:
        ValueError: There is no such model.
    """
    check(name)
    if name == LARGE:
        from bench.large_model import make  # torch and transformers take seconds, and the others do without

        return Model(LARGE, make(), "multilingual", shrink=8)
    return Model(name, fetch(name), "english" if name == "minilm" else "multilingual")
