"""A transformer that somebody traced or scripted, on the CPU or on CUDA.

Its `forward(input_ids, attention_mask)`, and perhaps `token_type_ids` as a third, all [inputs, length] int64, gives
hidden states [inputs, length, hidden] or a classifier's logits [inputs, labels]: a tensor, or a tuple, list or dict
that has it first, or under "last_hidden_state" or "logits".
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
    from marvec.tokens import Tokens

GRAPH = "model.pt"
TYPES = "token_type_ids"
_USUAL_HIDDEN_SIZE = 768
HIDDEN_SIZE_KEYS = ("hidden_size", "dim", "d_model", "n_embd")  # families call it differently in config.json


class TorchScriptEncoder:
    """A TorchScript graph, fed with padded batches.

    Attributes:
        inputs: The names of what the graph takes, in order.
        required: How many of them have no default.
        takes_types: Whether the third of them are token type ids.
    """

    name = "torchscript"

    def __init__(
        self, graph: torch.jit.ScriptModule, pad_id: int, hidden: int, settings: EngineSettings, device: str
    ) -> None:
        """Wrap a loaded graph.

        Args:
            graph: As described at the top of this file, on `device`.
            pad_id: The token that fills a batch up.
            hidden: The model's hidden size.
            settings: For the dtype and the batch budget.
            device: "cpu" or "cuda:N".
        """
        schema = getattr(graph.forward, "schema", None)
        arguments = [] if schema is None else schema.arguments[1:]  # the first one is self
        self.inputs = [argument.name for argument in arguments]
        self.required = sum(not argument.has_default_value() for argument in arguments)
        self.takes_types = self.inputs[2:3] == [TYPES]
        self._graph = graph
        self._pad_id = pad_id
        self.device = device
        self.dtype = settings.dtype
        self.threads = torch.get_num_threads()
        self.policy = padding.policy(device, settings.max_batch_tokens, hidden)

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
        hidden = next((int(config[key]) for key in HIDDEN_SIZE_KEYS if key in config), _USUAL_HIDDEN_SIZE)
        return cls(graph.eval(), int(config.get("pad_token_id") or 0), hidden, settings, device)

    def encode(self, passes: Sequence[Rows]) -> Iterator[Tensor]:
        """Run one pass after another."""
        for rows in passes:
            output, real = self.run([item for (item,) in rows])
            yield output[real].float() if output.ndim == 3 else output.float()

    @torch.inference_mode()
    def run(self, batch: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Pad inputs and run the graph on them.

        Returns:
            What the graph gives, [inputs, length, hidden] or [inputs, labels], and where it is not padding [inputs,
            length] bool.

        Raises:
            TypeError: When the graph gives no tensor where hidden states or logits should be.
        """
        ids, real, types = (part.to(self.device) for part in padding.pad(batch, self._pad_id))
        further = [types] if self.takes_types else []
        return _tensor(self._graph(ids, real.long(), *further)), real


def _tensor(output: object) -> Tensor:
    if isinstance(output, dict):
        first = next(iter(output.values()), None)
        output = output.get("last_hidden_state", output.get("logits", first))
    elif isinstance(output, (tuple, list)):
        output = next(iter(output), None)
    if not isinstance(output, Tensor):
        raise TypeError(f"the graph gives {type(output).__name__} where a tensor should be")
    return output
