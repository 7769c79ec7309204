"""Which encoder an archive carries, and what of the model's files it keeps for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from archiver import int8, openvino_export, weights
from archiver.calibration import Calibration
from archiver.errors import PackError
from archiver.openvino_export import ExportError
from marvec.model import Model
from marvec.settings import EngineSettings


def install(
    reference: Model,
    asked: EngineSettings,
    target: str,
    staged: Path,
    tell: Callable[[str], None],
    calibration: Calibration | None = None,
) -> EngineSettings:
    """Export the model for CPUs where it converts, and drop the weights that nothing would read.

    Args:
        reference: The staged model in float32 on PyTorch, as reference.py gives it.
        asked: What the archive is to compute in.
        target: One of options.TARGETS.
        staged: The archive's tree, with the model's weights; gets drift.json beside an exported graph.
        tell: Takes a line for the user.
        calibration: What int8 is fitted to; None for every other precision.

    Returns:
        The engine's settings, with the encoder.

    Raises:
        PackError: When int8 was asked for and cannot be had.
    """
    plain = replace(asked, encoder=reference.encoder.name)
    if target == "gpu" or plain.encoder == "torchscript":
        return plain
    folder = staged / "model"
    tell("exporting the model to OpenVINO")
    try:
        drift = openvino_export.export(reference, folder)
    except ExportError as err:
        if calibration is not None:
            raise PackError(f"--dtype: int8 needs a model that converts to OpenVINO: {err}") from err
        tell(f"not exported, so it runs on PyTorch, slower on CPUs: {err}")
        return plain
    tell(f"exported: largest difference to PyTorch {drift.largest_difference:.1e} on {drift.inputs} inputs")
    if calibration is not None:
        fitted, held_out = len(calibration.fitted), len(calibration.held_out)
        tell(f"quantizing to int8: {fitted} texts set the ranges, {held_out} more measure the loss")
        drift = int8.quantize(reference, folder, calibration)
        tell(f"int8 against float32: {drift.told}")
    drift.save(staged)
    if target == "cpu":
        weights.drop(folder)
    return replace(asked, encoder="openvino")
