"""A classifier's directory as Marvec packs and serves it, in this process: all but the .mar file and TorchServe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from archiver import checks, choices, engine, model_config, reference, staging, weight_check
from archiver.options import PackOptions
from archiver.source import Source
from marvec import loading
from marvec.service import Service
from marvec.settings import ClassificationSettings, read_settings

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
    model = checks.read(directory, options.handler)
    choice = choices.settle(model, Source(directory, directory.name, None), replace(options, model=str(directory)))
    found = staging.find_weights(model, options.torchscript)
    unused = weight_check.check(model, found.transformer)
    staged.mkdir(parents=True)
    notes = list(choice.notes)
    folder = staging.stage(staged, model, found, unused)
    exact = reference.load(staged, model, found, choice.settings, notes.append)
    chosen = engine.install(exact, choice.settings.engine, options.settled_target, staged, notes.append)
    config = model_config.render(replace(choice.settings, engine=chosen), batch_size=1, workers=None)
    settings = read_settings(yaml.safe_load(config)["handler"])
    assert isinstance(settings, ClassificationSettings)
    service = Service(loading.load(folder, settings), {}, capacity_tokens=_NO_LIMIT_TOKENS)
    return Asked(service, settings, tuple(notes))
