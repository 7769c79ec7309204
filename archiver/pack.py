"""The packaging road, from a model's name to a proved archive in its place."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import transformers

from archiver import (
    archive,
    calibration,
    checks,
    choices,
    engine,
    int8,
    model_config,
    probe,
    probe_texts,
    proof,
    reference,
    source,
    staging,
    vertex_prebuilt,
    weight_check,
)
from archiver.calibration import Calibration
from archiver.errors import PackError, first_line, from_os_error
from archiver.options import PackOptions
from archiver.probe import Probe
from archiver.workspace import require_space, workspace
from marvec import golden
from marvec.errors import SelfTestError
from marvec.model import Model
from marvec.settings import ClassificationSettings, Settings

_VERTEX = "vertex"
_UNLIKE_TOKENS = (5, 40)
_LARGEST_ERROR = 1e-3  # of the norm; rounding gives 1e-6


@dataclass(frozen=True)
class Packed:
    """An archive that is ready to be served.

    Attributes:
        name: The model's name on the server.
        version: The model's version on the server.
        file: The .mar.
        size_bytes: Its size.
        settings: What its worker goes by.
        vertex: The second archive, for Google's prebuilt containers, where one was asked for.
    """

    name: str
    version: str
    file: Path
    size_bytes: int
    settings: Settings
    vertex: Path | None = None


def pack(options: PackOptions, tell: Callable[[str], None]) -> Packed:
    """Make a .mar of a model, prove it, put it in its place.

    Args:
        options: What was asked for.
        tell: Takes a line for the user: what was chosen, and what is being done.

    Returns:
        The archive; an earlier one of the same name was replaced at the very end.

    Raises:
        MarvecError: When the model cannot be packed or the archive cannot be proved. Nothing is left behind then.
    """
    texts = None
    if options.calibration is not None:
        int8.require_nncf()
        texts = calibration.read(options.calibration)
    with _quiet_transformers():
        origin = source.find(options.model, options.revision, lambda folder: checks.read(folder, options.handler), tell)
        name = options.archive_name(origin.id)
        target = options.model_store / f"{name}.mar"
        try:
            if target.is_dir():
                raise PackError(f"{target}: a folder is in the archive's place")
            vertex_folder = options.model_store / f"{name}.vertex"
            if options.vertex_prebuilt and vertex_folder.exists() and not vertex_folder.is_dir():
                raise PackError(f"{vertex_folder}: a file is in the place of the second archive's folder")
            with workspace(options.model_store, name) as folder:
                settings = _build(options, origin, texts, name, folder, tell)
                vertex = _place_vertex(folder, vertex_folder) if options.vertex_prebuilt else None
                os.replace(folder / target.name, target)
        except OSError as err:
            raise from_os_error(err, options.model_store) from err
    return Packed(name, options.version, target, target.stat().st_size, settings, vertex)


def _build(
    options: PackOptions,
    origin: source.Source,
    texts: Calibration | None,
    name: str,
    folder: Path,
    tell: Callable[[str], None],
) -> Settings:
    """Leave NAME.mar, proved, in the folder, and vertex/model.mar if asked."""
    model = checks.read(origin.folder, options.handler)
    choice = choices.settle(model, origin, options)
    settings = choice.settings
    found = staging.find_weights(model, options.torchscript)
    require_space(options.model_store, found.size_bytes)
    for note in (f"served for {model.task}", *choice.notes):
        tell(note)

    packages = folder / "packages"
    if options.vertex_prebuilt:
        tell(f"fetching for Python {vertex_prebuilt.PYTHON}: {', '.join(vertex_prebuilt.PACKAGES)}")
        vertex_prebuilt.fetch(packages)
        require_space(options.model_store, found.size_bytes + vertex_prebuilt.size_bytes(packages), archives=2)
    if found.transformer is not None:
        tell("checking the weights against config.json")
    unused = weight_check.check(model, found.transformer)
    staged = folder / "staged"
    staged.mkdir()
    staging.stage(staged, model, found, unused)

    exact = reference.load(staged, model, found, settings, tell)
    tell("recording golden answers")
    asked = _record(exact, origin.folder, staged / staging.GOLDEN)
    settings = replace(
        settings, engine=engine.install(exact, settings.engine, options.settled_target, staged, tell, texts)
    )
    if options.vertex_prebuilt:
        vertex_prebuilt.require_openvino(settings.engine.encoder)
    config = model_config.render(settings, batch_size=options.batch_size, workers=options.workers)
    (staged / staging.CONFIG).write_text(config, encoding="utf-8")
    del exact
    gc.collect()  # the weights leave memory before another process loads them

    finished = archive.build(staged, folder, name, options.version, staging.HANDLERS[settings.task])
    if options.vertex_prebuilt:
        (folder / _VERTEX).mkdir()
        vertex_prebuilt.build(staged, folder / _VERTEX, packages, options, settings)
    shutil.rmtree(staged)  # makes room for the unpacked archive
    tell("loading the archive as a TorchServe worker does")
    provable = proof.dtype_here(settings.engine.dtype)
    if provable != settings.engine.dtype:
        tell(f"in {provable}: this machine does not compute in {settings.engine.dtype}")
    unpacked = folder / "unpacked"
    unpacked.mkdir()
    proof.prove(finished, unpacked, name, settings, asked)
    shutil.rmtree(unpacked)
    if options.vertex_prebuilt:
        tell("loading model.mar as a worker of a prebuilt container does")
        vertex_prebuilt.prove(folder / _VERTEX, settings, asked)
    return settings


def _place_vertex(folder: Path, target: Path) -> Path:
    target.mkdir(exist_ok=True)
    file = target / vertex_prebuilt.FILE
    os.replace(folder / _VERTEX / vertex_prebuilt.FILE, file)
    return file


def _record(exact: Model, origin: Path, file: Path) -> Probe:
    """Write the golden answers, and ask the model what a worker will be asked."""
    _require_full_length(exact, origin)
    _require_room_for_pairs(exact, origin)
    try:
        golden.record(exact).save(file)
    except SelfTestError as err:
        raise PackError(f"{origin}: {err}") from err
    _require_neighbours_apart(exact, origin)  # once its numbers are known to be finite
    return probe.record(exact)


def _require_full_length(model: Model, origin: Path) -> None:
    """Run one input of the greatest length: a wrong limit of positions shows nowhere else."""
    length = model.tokenizer.max_length
    (full,) = model.tokenizer.encode(["a " * length])
    try:
        model.compute([full])
    except (RuntimeError, IndexError) as err:
        raise PackError(f"{origin}: fails on an input of {length} tokens ({err}); set a lower --max-length") from err


def _require_room_for_pairs(model: Model, origin: Path) -> None:
    """A pair's special tokens all stay, so that too short a limit would leave nothing of the texts."""
    if not isinstance(model.settings, ClassificationSettings) or not model.settings.model.pairs:
        return
    special = model.tokenizer.encode_pairs([("", "")])[0].full_count
    if special >= model.tokenizer.max_length:
        raise PackError(
            f"{origin}: a pair of texts has {special} special tokens, and the greatest length is "
            f"{model.tokenizer.max_length}: set a higher --max-length, or pack with --no-pairs"
        )


def _require_neighbours_apart(model: Model, origin: Path) -> None:
    """Run a short input beside a long one and alone: some models look at the padding behind it."""
    short, long = (probe_texts.of_length(model.tokenizer, min(n, model.tokenizer.max_length)) for n in _UNLIKE_TOKENS)
    try:
        (output,) = model.encoder.encode([[[short], [long]]])
    except ValueError as err:
        raise PackError(
            f"{origin}: cannot run two texts together ({first_line(err)}); if it has no padding token, set "
            "pad_token_id in config.json"
        ) from err
    beside = model.numbers_of(output, [len(short.ids), len(long.ids)])[0]
    alone = model.compute([short])[0]
    if not (beside - alone).norm() <= _LARGEST_ERROR * alone.norm():
        raise PackError(
            f"{origin}: its answer to a text changes beside a longer one, since it looks at the padding: such models "
            "cannot be served in batches"
        )


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Its bars and load reports are not for the user of this command: what matters is checked and told by us."""
    log = transformers.utils.logging
    before, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(log.CRITICAL)
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(before)
        if bars:
            log.enable_progress_bar()
