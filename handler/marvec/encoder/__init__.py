"""Token ids -> hidden states, behind one small protocol; `load` chooses who does it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from marvec.settings import EngineSettings

if TYPE_CHECKING:
    from torch import Tensor


class Encoder(Protocol):
    """Runs a transformer.

    Attributes:
        name: As in the settings, such as "transformers".
        device: Where it runs, such as "cpu" or "cuda:0".
        dtype: Precision of the forward pass, such as "float32".
        max_batch_tokens: Padded tokens of a batch at which it works best.
    """

    name: str
    device: str
    dtype: str
    max_batch_tokens: int

    def forward(self, batch: Sequence[Sequence[int]]) -> Tensor:
        """Encode some inputs in one pass.

        Args:
            batch: Token ids of each input, special tokens included; at least one input, each at least one token.

        Returns:
            [tokens, hidden] float32 on `device`: the tokens of all inputs one after another, without padding.
        """
        ...


def load(folder: Path, settings: EngineSettings, device: str) -> Encoder:
    """Load the encoder that the settings name.

    Args:
        folder: The archive's `model/`: config.json and weights.
        settings: Which encoder, in which precision.
        device: "cpu" or "cuda:N".

    Raises:
        ModelDirError: When the weights do not fit the configuration.
        SettingsError: When the device cannot compute in the dtype.
    """
    # Imported here, since transformers takes seconds and an encoder without it must not pay them.
    from marvec.encoder.transformers_encoder import TransformersEncoder

    return TransformersEncoder.load(folder, settings, device)
