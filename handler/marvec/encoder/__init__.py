"""Token ids -> hidden states or logits, behind one small protocol; `load` chooses who does it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from marvec.batching import Policy
from marvec.encoder import precision
from marvec.errors import SettingsError
from marvec.settings import EngineSettings
from marvec.tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor

logger = logging.getLogger("marvec")

Rows = Sequence[Sequence[Tokens]]
"""One forward pass: rows of inputs. No row and no input is empty."""


class Encoder(Protocol):
    """Runs a transformer.

    Attributes:
        name: As in the settings, such as "openvino".
        device: Where it runs, such as "cpu" or "cuda:0".
        dtype: Precision of the forward pass, such as "float32".
        threads: CPU threads of a pass that runs alone.
        policy: The passes that it likes; it gets several inputs in a row only where the policy packs rows.
    """

    name: str
    device: str
    dtype: str
    threads: int
    policy: Policy

    def encode(self, passes: Sequence[Rows]) -> Iterator[Tensor]:
        """Run forward passes, as many side by side as it can.

        Returns:
            For each pass, in order, float32 on `device`: hidden states [tokens, hidden] of the tokens of all its
            inputs, row by row, without padding; of a classifier the logits [inputs, labels] of these inputs.
        """
        ...


def load(folder: Path, settings: EngineSettings, device: str, task: str) -> Encoder:
    """Load the encoder that the archive has for a device.

    Args:
        folder: The archive's `model/`.
        settings: Which encoder, in which precision.
        device: "cpu" or "cuda:N".
        task: Whether it gives hidden states ("embedding") or logits ("classification").

    Raises:
        ModelDirError: When the files do not fit each other.
        SettingsError: When the device cannot compute in the dtype.
    """
    # Imported where they are needed: transformers takes seconds, and who does without it must not pay them.
    if device.startswith("cuda") and settings.encoder == "openvino":
        if any(folder.glob("*.safetensors")):
            settings = replace(settings, encoder="transformers")
        else:
            logger.warning("the GPU stays idle: this archive is for CPUs; pack it with --target gpu or --target any")
            device = "cpu"
    if settings.dtype == "int8" and settings.encoder != "openvino":
        raise SettingsError(f"engine.dtype: int8 needs a graph that was packed in it, not {settings.encoder}")
    if settings.dtype == "int8" and not precision.cpu_has_int8():
        logger.warning(
            "int8 may be slower than float32 on this CPU, which has neither avx512_vnni, avx_vnni nor amx_int8"
        )
    settings = replace(settings, dtype=precision.settle(settings.dtype, device))
    if settings.encoder == "openvino":
        from marvec.encoder.openvino_encoder import OpenVinoEncoder

        return OpenVinoEncoder.load(folder, settings)
    if settings.encoder == "torchscript":
        from marvec.encoder.torchscript_encoder import TorchScriptEncoder

        return TorchScriptEncoder.load(folder, settings, device)
    from marvec.encoder.transformers_encoder import TransformersEncoder

    return TransformersEncoder.load(folder, settings, device, task)
