"""Changes to a copy of a model directory, to be made by SidesMaker.changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


def edit(name: str, **settings: object) -> Callable[[Path], object]:
    """Return a change that sets keys of a JSON file, making it if need be; None removes a key."""

    def change(folder: Path) -> None:
        file = folder / name
        content = (json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}) | settings
        kept = {key: value for key, value in content.items() if value is not None}
        file.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")

    return change


def recast(name: str, dtype: torch.dtype) -> Callable[[Path], object]:
    """Return a change that stores the weights of a safetensors file in another precision."""

    def change(folder: Path) -> None:
        weights = {key: tensor.to(dtype) for key, tensor in load_file(folder / name).items()}
        save_file(weights, folder / name, metadata={"format": "pt"})

    return change


def chain(*changes: Callable[[Path], object]) -> Callable[[Path], object]:
    """Return a change that makes several, in order."""
    return lambda folder: [change(folder) for change in changes]
