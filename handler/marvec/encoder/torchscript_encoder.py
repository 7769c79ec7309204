"""A transformer that somebody traced or scripted, on the CPU or on CUDA.

Its `forward(input_ids, attention_mask)`, both [inputs, length] int64, gives hidden states [inputs, length, hidden]: a
tensor, or a tuple, list or dict that has it first, or under "last_hidden_state".
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from marvec.encoder import padding
from marvec.errors import ModelDirError
from marvec.settings import EngineSettings

if TYPE_CHECKING:
    from marvec.encoder import Rows

GRAPH = "model.pt"


class TorchScriptEncoder:
    """A TorchScript graph, fed with padded batches."""

    name = "torchscript"

    def __init__(self, graph: torch.jit.ScriptModule, pad_id: int, settings: EngineSettings, device: str) -> None:
        """Wrap a loaded graph.

        Args:
            graph: As described at the top of this file, on `device`.
            pad_id: The token that fills a batch up.
            settings: For the dtype and the batch budget.
            device: "cpu" or "cuda:N".
        """
        self.graph = graph
        self._pad_id = pad_id
        self.device = device
        self.dtype = settings.dtype
        self.threads = torch.get_num_threads()
        self.policy = padding.policy(device, settings.max_batch_tokens)

    @classmethod
    def load(cls, folder: Path, settings: EngineSettings, device: str) -> TorchScriptEncoder:
        """Load the graph of a folder, and the padding token from its config.json.

        Raises:
            ModelDirError: When a file is missing or damaged.
        """
        file = folder / "config.json"
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as err:
            raise ModelDirError(f"{file}: cannot be read: {err}") from err
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # torch would rather have it exported anew
                graph = torch.jit.load(folder / GRAPH, map_location=device)  # type: ignore[no-untyped-call]
        except (OSError, RuntimeError, ValueError) as err:
            raise ModelDirError(f"{folder / GRAPH}: torch cannot load it as TorchScript: {err}") from err
        return cls(graph.eval(), int(config.get("pad_token_id") or 0), settings, device)

    def encode(self, passes: Sequence[Rows]) -> Iterator[Tensor]:
        """Run one pass after another."""
        for rows in passes:
            hidden, real = self.run([item for (item,) in rows])
            yield hidden[real].float()

    @torch.inference_mode()
    def run(self, batch: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Pad inputs and encode them.

        Returns:
            What the graph gives, [inputs, length, hidden], and where it is not padding [inputs, length] bool.

        Raises:
            TypeError: When the graph gives no tensor where hidden states should be.
        """
        ids, real = (part.to(self.device) for part in padding.pad(batch, self._pad_id))
        return _hidden_states(self.graph(ids, real.long())), real


def _hidden_states(output: object) -> Tensor:
    if isinstance(output, dict):
        output = output.get("last_hidden_state", next(iter(output.values()), None))
    elif isinstance(output, (tuple, list)):
        output = next(iter(output), None)
    if not isinstance(output, Tensor):
        raise TypeError(f"the graph gives {type(output).__name__} where hidden states should be")
    return output
