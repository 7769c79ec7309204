"""The exported graph in int8: weights in their own ranges, activations in those that the user's texts show (NNCF)."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from archiver import drift, openvino_export
from archiver.calibration import Calibration
from archiver.drift import Drift, ScoreDrift, VectorDrift
from archiver.errors import PackError, first_line
from marvec import batching, loading, prompts
from marvec.batching import Policy
from marvec.encoder import openvino_encoder
from marvec.encoder.openvino_encoder import GRAPH, WEIGHTS, OpenVinoEncoder
from marvec.encoder.openvino_runtime import core, openvino
from marvec.model import Model
from marvec.settings import EmbeddingSettings, EngineSettings
from marvec.tokens import Tokens

# Of held-out texts. all-MiniLM-L6-v2 and multilingual-e5-small reach 0.998, 0.995 and 0.997; ranges from texts that are
# unlike those held out give 0.987, 0.974 and 0.891, and then a search finds other things.
LEAST_MEAN_COSINE = 0.99
LEAST_WORST_COSINE = 0.95
LEAST_RANK_CORRELATION = 0.98
LEAST_SAME_LABEL = 0.95
MOST_MEAN_DIFFERENCE = 0.03
_SMOOTHING = 0.75  # SmoothQuant's alpha (arXiv:2211.10438); NNCF's own 0.95 does worse, docs/decisions/0012-int8.md


def require_nncf() -> None:
    """Refuse before any work what would fail after minutes.

    Raises:
        PackError: When NNCF is not installed.
    """
    if importlib.util.find_spec("nncf") is None:
        raise PackError("--dtype: int8 needs NNCF, which is not installed; install it with: pip install 'marvec[int8]'")


def quantize(reference: Model, folder: Path, calibration: Calibration) -> Drift:
    """Replace the graph of a folder by one in int8.

    Args:
        reference: The model in float32 on PyTorch.
        folder: The archive's `model/`, with the graph in float32.
        calibration: Texts as callers send them; the archive's default prompt is put before them here.

    Returns:
        How far the answers to the held-out texts are from the reference's.

    Raises:
        PackError: When they are too far for a search to work with.
    """
    settings = replace(reference.settings, engine=replace(reference.settings.engine, encoder="openvino", dtype="int8"))
    _write(folder, _tokens(reference, calibration.fitted), settings.engine)
    found = drift.between(reference, loading.load(folder, settings), _tokens(reference, calibration.held_out))
    _require_close(found)
    return found


def _tokens(model: Model, texts: Sequence[str]) -> list[Tokens]:
    prompt = prompts.default(model.settings.model) if isinstance(model.settings, EmbeddingSettings) else ""
    return [item for item in model.tokenizer.encode([prompt + text for text in texts]) if item.ids]


def _write(folder: Path, inputs: Sequence[Tokens], settings: EngineSettings) -> None:
    graph = core().read_model(folder / GRAPH)
    policy = OpenVinoEncoder(graph, settings, threads=1, lanes=1).policy
    names = [port.get_any_name() for port in graph.inputs]
    data = _passes(inputs, policy, names)
    with _quiet():
        quantized = _quantized(graph, data)
    with TemporaryDirectory(dir=folder) as fresh:  # the weights in float32 are still mapped into memory
        openvino_export.save(quantized, Path(fresh))
        for name in (GRAPH, WEIGHTS):
            os.replace(Path(fresh, name), folder / name)


def _quantized(graph: openvino.Model, data: Sequence[Mapping[str, NDArray[np.int64]]]) -> openvino.Model:
    import nncf  # seconds, and an extra that every other precision does without

    nncf.set_log_level(logging.ERROR)
    smoothing = nncf.AdvancedSmoothQuantParameters(matmul=_SMOOTHING)
    try:
        return nncf.quantize(
            graph,
            nncf.Dataset(data),
            subset_size=len(data),
            model_type=nncf.ModelType.TRANSFORMER,
            advanced_parameters=nncf.AdvancedQuantizationParameters(smooth_quant_alphas=smoothing),
        )
    except Exception as err:  # whatever a graph of some new kind brings up
        raise PackError(f"--dtype: int8: NNCF cannot quantize this model: {first_line(err)}") from err


def _passes(inputs: Sequence[Tokens], policy: Policy, names: Sequence[str]) -> list[dict[str, NDArray[np.int64]]]:
    """The passes that a worker would make of the inputs, as the graph takes them."""
    plan = batching.plan([len(item.ids) for item in inputs], policy)
    laid_out = [openvino_encoder.inputs([[inputs[i] for i in row] for row in one], names) for one in plan]
    return [{name: one[name] for name in names} for one in laid_out]


def _require_close(found: Drift) -> None:
    figures: tuple[tuple[str, float, float], ...] = ()
    if isinstance(found, VectorDrift):
        figures = (
            ("mean cosine", found.mean_cosine, LEAST_MEAN_COSINE),
            ("worst cosine", found.worst_cosine, LEAST_WORST_COSINE),
            ("rank correlation", found.rank_correlation, LEAST_RANK_CORRELATION),
        )
    elif isinstance(found, ScoreDrift):
        figures = (
            ("share of texts with the same labels", found.same_label, LEAST_SAME_LABEL),
            ("1 - mean difference of a score", 1 - found.mean_difference, 1 - MOST_MEAN_DIFFERENCE),
        )
    if not all(value >= least for _, value, least in figures):  # a NaN is neither
        told = ", ".join(f"{name} {value:.4f} (at least {least:g})" for name, value, least in figures)
        raise PackError(
            f"--dtype: int8 changes the {found.what} of {found.inputs} held-out texts too much: {told}; give more or "
            "other texts with --calibration, of the kind that will be sent, or take bfloat16 or float32"
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """NNCF prints its bars to where the summary goes: they are for a terminal only."""
    place = sys.stderr if sys.stderr.isatty() else io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(place):
        warnings.simplefilter("ignore")
        yield
