"""The linear layers that some models put after the pooling (sentence-transformers' Dense module)."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from marvec.errors import ModelDirError


class Dense:
    """One linear layer and its activation."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: torch.nn.Module) -> None:
        """Hold the layer's weights.

        Args:
            weight: [out, in] float32.
            bias: [out] float32, or None.
            activation: Applied to each number.
        """
        self._weight, self._bias, self._activation = weight, bias, activation

    @classmethod
    def load(cls, folder: Path, device: str) -> Dense:
        """Read config.json and model.safetensors of a Dense module.

        Raises:
            ModelDirError: When a file is missing or asks for what Marvec cannot follow.
        """
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            weights = load_file(folder / "model.safetensors", device=device)
        except (OSError, ValueError) as err:
            raise ModelDirError(f"{folder}: cannot be read as a Dense module: {err}") from err
        extra = set(weights) - {"linear.weight", "linear.bias"}
        if config.get("use_residual") or extra or "linear.weight" not in weights:
            raise ModelDirError(f"{folder}: only a plain linear layer with an activation is supported")
        bias = weights.get("linear.bias")
        return cls(
            weights["linear.weight"].float(), None if bias is None else bias.float(), _activation(folder, config)
        )

    def __call__(self, vectors: Tensor) -> Tensor:
        """[texts, in] float32 -> [texts, out] float32."""
        result: Tensor = self._activation(torch.nn.functional.linear(vectors, self._weight, self._bias))
        return result


def _activation(folder: Path, config: dict[str, object]) -> torch.nn.Module:
    name = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    kind = getattr(torch.nn, name.rsplit(".", 1)[-1], None) if name.startswith("torch.nn.") else None
    if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)):
        raise ModelDirError(f"{folder / 'config.json'}: activation_function {name!r} is not a torch.nn activation")
    return kind()
