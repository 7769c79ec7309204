"""TorchServe's entry to an archive that gives labels: tokenize, forward, score."""

from __future__ import annotations

from typing import ClassVar

from marvec.settings import ClassificationSettings
from marvec_handler import MarvecHandler


class ClassificationHandler(MarvecHandler):
    """Serves the labels of one archive's classifier."""

    task: ClassVar[str] = ClassificationSettings.task
