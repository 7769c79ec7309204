"""A classifier's directory as Marvec packs and serves it, in this process: all but the .mar file and TorchServe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from archiver.options import PackOptions
from marvec import loading
from marvec.service import Service
from marvec.settings import ClassificationSettings
from tests.models.staged import stage

_NO_LIMIT_TOKENS = 10_000_000


@dataclass(frozen=True)
class Asked:
    """A staged classifier.

    Attributes:
        service: What a worker asks.
        settings: What its model-config.yaml says.
        notes: What pack told the user of its choices.
    """

    service: Service
    settings: ClassificationSettings
    notes: tuple[str, ...]

    def predictions(self, instances: Sequence[object], **parameters: object) -> list[object]:
        """Send one request, and return what its answer holds."""
        job = self.service.read(json.dumps({"instances": instances, "parameters": parameters}).encode(), {}, "")
        (result,) = self.service.compute([job])
        if isinstance(result, Exception):
            raise result
        predictions: list[object] = json.loads(self.service.write(job, result))["predictions"]
        return predictions

    def scores(self, instances: Sequence[object]) -> list[Mapping[str, float]]:
        """The score of each label of each instance."""
        listed = self.predictions(instances, scores="all")
        return [{str(item["label"]): item["score"] for item in one} for one in listed]  # type: ignore[attr-defined]


def pack(directory: Path, staged: Path, options: PackOptions) -> Asked:
    """Stage a directory as `marvec pack` does, and load what was staged.

    Args:
        directory: The model, as the user has it.
        staged: A folder to make.
        options: The options of `marvec pack`; its `model` does not matter.
    """
    made = stage(directory, staged, options)
    assert isinstance(made.settings, ClassificationSettings)
    service = Service(loading.load(made.folder, made.settings), {}, capacity_tokens=_NO_LIMIT_TOKENS)
    return Asked(service, made.settings, made.notes)
