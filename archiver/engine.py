"""Which encoder an archive carries, and what of the model's files it keeps for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from archiver import openvino_export, weights
from archiver.openvino_export import ExportError
from marvec.embedder import Embedder
from marvec.settings import EngineSettings


def install(
    reference: Embedder, asked: EngineSettings, target: str, staged: Path, tell: Callable[[str], None]
) -> EngineSettings:
    """Export the model for CPUs where it converts, and drop the weights that nothing would read.

    Args:
        reference: The staged model in float32 on PyTorch, as reference.py gives it.
        asked: What the archive is to compute in.
        target: One of options.TARGETS.
        staged: The archive's tree, with the model's weights; gets drift.json beside an exported graph.
        tell: Takes a line for the user.

    Returns:
        The engine's settings, with the encoder.
    """
    plain = replace(asked, encoder=reference.encoder.name)
    if target == "gpu" or plain.encoder == "torchscript":
        return plain
    folder = staged / "model"
    tell("exporting the encoder to OpenVINO")
    try:
        drift = openvino_export.export(reference, folder)
    except ExportError as err:
        tell(f"not exported, so it runs on PyTorch, slower on CPUs: {err}")
        return plain
    tell(f"exported: largest difference to PyTorch {drift.largest_difference:.1e} on {drift.inputs} inputs")
    drift.save(staged)
    if target == "cpu":
        weights.drop(folder)
    return replace(asked, encoder="openvino")
