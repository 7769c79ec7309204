"""Exported graphs, kept for a session: a tokenizer, a pooling or a layer after it changes nothing in a transformer."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from archiver import engine
from marvec.encoder.openvino_encoder import GRAPH, WEIGHTS
from marvec.model import Model
from marvec.settings import EngineSettings


class Exports:
    """Chooses the encoder of a staged model as the archiver does, but exports no transformer twice."""

    def __init__(self, folder: Path) -> None:
        """Keep graphs below an existing folder."""
        self._folder = folder

    def install(
        self, reference: Model, asked: EngineSettings, target: str, staged: Path, tell: Callable[[str], None]
    ) -> EngineSettings:
        """Do what `archiver.engine.install` does; the arguments and the result are its own."""
        folder = staged / "model"
        kept = self._folder / _digest(folder)
        if kept.is_dir() and target != "gpu":
            for name in (GRAPH, WEIGHTS):
                os.link(kept / name, folder / name)
            return replace(asked, encoder="openvino")
        chosen = engine.install(reference, asked, target, staged, tell)
        if chosen.encoder == "openvino":
            kept.mkdir()
            for name in (GRAPH, WEIGHTS):
                os.link(folder / name, kept / name)
        return chosen


def _digest(folder: Path) -> str:
    """The transformer's configuration and weights as a name."""
    content = sha256((folder / "config.json").read_bytes())
    for file in sorted(folder.glob("*.safetensors")):
        content.update(file.read_bytes())
    return content.hexdigest()
