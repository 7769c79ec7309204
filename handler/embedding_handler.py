"""TorchServe's entry to an archive that gives sentence vectors: tokenize, forward, pool."""

from __future__ import annotations

from typing import ClassVar

from marvec.settings import EmbeddingSettings
from marvec_handler import MarvecHandler


class EmbeddingHandler(MarvecHandler):
    """Serves the sentence vectors of one archive."""

    task: ClassVar[str] = EmbeddingSettings.task
