"""The transformer, or a classifier with its head, as an OpenVINO graph, held against PyTorch before it is shipped."""

from __future__ import annotations

import errno
import logging
import math
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from transformers import PreTrainedModel

from archiver import classifier_forms, drift, openvino_forms, probe_texts
from archiver.classifier_forms import PackedLabels, PaddedLabels
from archiver.drift import Drift
from archiver.errors import PackError
from archiver.openvino_forms import PackedRows, PaddedRows
from marvec import loading
from marvec.encoder import openvino_encoder
from marvec.encoder.openvino_encoder import GRAPH, HIDDEN_SIZE, WEIGHTS
from marvec.encoder.openvino_runtime import openvino
from marvec.encoder.transformers_encoder import TransformersEncoder
from marvec.model import Model
from marvec.settings import ClassificationSettings
from marvec.tokens import TextTokenizer, Tokens

MOST_DIFFERENCE = 1e-4  # of a number in a finished answer; rounding gives some 1e-7
_FULL_DISK_BYTES = 1 << 20
_WIDEST_ROW_TOKENS = 512
_SAMPLE_TOKENS = (5, 40, 9)
_SAMPLE_PAIRS = 4
_BEYOND_WINDOW_TOKENS = 32
_EXAMPLE = [
    [Tokens([5, 6, 7], 3, type_ids=[0, 0, 1]), Tokens.of([8, 9])],
    [Tokens([10, 11, 12, 13], 4, type_ids=[0, 1, 1, 1])],
]

Form = PackedRows | PaddedRows | PackedLabels | PaddedLabels


class ExportError(PackError):
    """The model has no faithful OpenVINO graph; the message says why."""


def export(reference: Model, folder: Path) -> Drift:
    """Write the graph of a model beside its other files.

    Args:
        reference: The model in float32 on PyTorch.
        folder: The archive's `model/`; gets the graph's two files.

    Returns:
        How far the graph's answers are from the reference's, on inputs of every length.

    Raises:
        ExportError: When the model does not convert, or drifts. The folder is as it was before then.
    """
    try:
        _write(reference, folder)
        found = _measure(reference, folder)
        if not found.largest_difference <= MOST_DIFFERENCE:
            raise ExportError(
                f"its {found.what} differ by {found.largest_difference:.1e}, allowed is {MOST_DIFFERENCE:.0e}"
            )
    except (ExportError, OSError):
        discard(folder)
        raise
    except Exception as err:  # whatever conversion of foreign code brings up
        discard(folder)
        raise ExportError(_reason(err)) from err
    return found


def save(graph: openvino.Model, folder: Path) -> None:
    """Write a graph with its weights as they are.

    Raises:
        OSError: When the disk is full; OpenVINO calls that an iostream error.
    """
    try:
        openvino.save_model(graph, folder / GRAPH, compress_to_fp16=False)
    except RuntimeError as err:
        if shutil.disk_usage(folder).free < _FULL_DISK_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)) from err
        raise


def discard(folder: Path) -> None:
    """Remove what `export` wrote."""
    for name in (GRAPH, WEIGHTS):
        (folder / name).unlink(missing_ok=True)


def _reason(err: Exception) -> str:
    """What went wrong; OpenVINO says first where in its source it noticed."""
    lines = [line.strip() for line in str(err).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("Exception from", "Check '", "Caught exception"))]
    return (told or lines or [type(err).__name__])[0]


def _write(reference: Model, folder: Path) -> None:
    if not isinstance(reference.encoder, TransformersEncoder):
        raise TypeError(f"the reference runs on {reference.encoder.name}, not on transformers")
    model = reference.encoder.model
    model.config.use_cache = False  # of decoders; nobody asks for a next token
    with _quiet():
        graph = _convert(_form(model, reference))
    if reference.settings.task == ClassificationSettings.task:
        graph.set_rt_info(str(reference.encoder.policy.hidden), HIDDEN_SIZE)
    save(graph, folder)


def _form(model: PreTrainedModel, reference: Model) -> Form:
    samples = _samples(reference.tokenizer, openvino_forms.window(model.config))
    if reference.settings.task == ClassificationSettings.task:
        pairs = probe_texts.paired(reference.tokenizer)[:_SAMPLE_PAIRS]
        return classifier_forms.find(model, samples, pairs, reference.settings.token_types)
    return openvino_forms.find(model, samples)


def _convert(form: Form) -> openvino.Model:
    packed = isinstance(form, (PackedRows, PackedLabels))
    laid_out = openvino_encoder.inputs(
        _EXAMPLE if packed else [[item] for row in _EXAMPLE for item in row], form.inputs
    )
    example = {name: torch.from_numpy(laid_out[name]) for name in form.inputs}
    shape = openvino.PartialShape([-1, -1])
    with torch.inference_mode(mode=False), torch.no_grad():
        graph = openvino.convert_model(
            form, example_input=example, input=[(name, shape, openvino.Type.i64) for name in form.inputs]
        )
    for port in graph.inputs:
        port.get_tensor().set_names(port.get_names() & set(form.inputs))  # tracing leaves names of its own beside ours
    return graph


def _samples(tokenizer: TextTokenizer, window: int | None) -> list[Tokens]:
    """Inputs that tell one form from another: the longest goes beyond the window of attention."""
    longest = min(tokenizer.max_length, (window or 0) + _BEYOND_WINDOW_TOKENS)
    samples = [probe_texts.of_length(tokenizer, length) for length in (*_SAMPLE_TOKENS, longest)]
    # Together as long as the widest row that inputs share: some models look at the length of a row.
    return samples * math.ceil(_WIDEST_ROW_TOKENS / sum(len(item.ids) for item in samples))


def _measure(reference: Model, folder: Path) -> Drift:
    settings = replace(reference.settings, engine=replace(reference.settings.engine, encoder="openvino"))
    inputs = probe_texts.for_task(reference.tokenizer, reference.settings)
    return drift.between(reference, loading.load(folder, settings), inputs)


@contextmanager
def _quiet() -> Iterator[None]:
    """Tracing warns of each Python value that it takes as a constant; the check afterwards tells what counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)
