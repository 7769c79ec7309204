"""A model directory staged as `marvec pack` does, in this process: all but the .mar file itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from archiver import checks, choices, engine, model_config, reference, staging, weight_check
from archiver.options import PackOptions
from archiver.source import Source
from marvec.model import Model
from marvec.settings import EngineSettings, Settings, read_settings

Install = Callable[[Model, EngineSettings, str, Path, Callable[[str], None]], EngineSettings]


@dataclass(frozen=True)
class Staged:
    """What a worker loads.

    Attributes:
        folder: The archive's `model/`.
        settings: What its model-config.yaml says.
        notes: What pack told the user of its choices.
    """

    folder: Path
    settings: Settings
    notes: tuple[str, ...]


def stage(directory: Path, staged: Path, options: PackOptions, install: Install = engine.install) -> Staged:
    """Stage a directory.

    Args:
        directory: The model, as the user has it.
        staged: A folder to make.
        options: The options of `marvec pack`; its `model` does not matter.
        install: Chooses the encoder and exports it.
    """
    options = replace(options, model=str(directory))
    model = checks.read(directory, options.handler)
    choice = choices.settle(model, Source(directory, directory.name, None), options)
    found = staging.find_weights(model, options.torchscript)
    unused = weight_check.check(model, found.transformer)
    staged.mkdir(parents=True)
    notes = list(choice.notes)
    folder = staging.stage(staged, model, found, unused)
    exact = reference.load(staged, model, found, choice.settings, notes.append)
    chosen = install(exact, choice.settings.engine, options.settled_target, staged, notes.append)
    config = model_config.render(
        replace(choice.settings, engine=chosen), batch_size=options.batch_size, workers=options.workers
    )
    return Staged(folder, read_settings(yaml.safe_load(config)["handler"]), tuple(notes))
