"""The tree of an archive, in a fresh folder.

embedding_handler.py or classification_handler.py, marvec_handler.py, marvec/
                                the handler and the library, as they stand beside each other in handler/
model/                          config.json, tokenizer.json, *.safetensors or model.pt, 2_Dense/…, LICENSE, README.md

What is made of the model comes later: golden.json (answers that every worker must reproduce), model/openvino_model.xml
and .bin with drift.json (the encoder for CPUs, in the place of the safetensors unless GPUs are a target too), and
model-config.yaml (what TorchServe and the handler read).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from transformers import AutoConfig

import marvec
from archiver import tokenizer_file, weights
from archiver.errors import PackError
from archiver.model_dir import ModelDir
from archiver.weights import Weights
from marvec.encoder.torchscript_encoder import GRAPH
from marvec.settings import ClassificationSettings, EmbeddingSettings

HANDLERS = {EmbeddingSettings.task: "embedding_handler.py", ClassificationSettings.task: "classification_handler.py"}
_BASE_HANDLER = "marvec_handler.py"
CONFIG = "model-config.yaml"
GOLDEN = "golden.json"
MODEL = "model"
_DOCUMENTS = ("LICENSE*", "LICENCE*", "README.md")
_LARGEST_DOCUMENT_BYTES = 1_000_000


@dataclass(frozen=True)
class ModelWeights:
    """All weights of a model.

    Attributes:
        transformer: Those of the transformer; None where only the TorchScript file has them.
        dense: Folder name -> those of a Dense layer.
        torchscript: The file that is served in the place of the transformer's weights, if there is one.
    """

    transformer: Weights | None
    dense: dict[str, Weights]
    torchscript: Path | None = None

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        found = [item for item in (self.transformer, *self.dense.values()) if item is not None]
        return sum(item.size_bytes for item in found) + (self.torchscript.stat().st_size if self.torchscript else 0)


def find_weights(model: ModelDir, torchscript: Path | None = None) -> ModelWeights:
    """Find the weights of the transformer and of the layers after it.

    Args:
        model: The model directory.
        torchscript: A TorchScript file of the transformer, beside which the directory needs no weights of it.

    Raises:
        PackError: When some are missing.
    """
    return ModelWeights(
        transformer=weights.find(model.transformer) if torchscript is None else weights.look(model.transformer),
        dense={name: weights.find(model.root / name) for name in model.dense},
        torchscript=torchscript,
    )


def stage(folder: Path, model: ModelDir, found: ModelWeights, unused: Collection[str]) -> Path:
    """Fill a folder with what an archive has of the model and of the code.

    Args:
        folder: Exists and is empty.
        model: The model directory, which stays as it is.
        found: Its weights.
        unused: Tensors that the model does not read.

    Returns:
        The folder with the model's files.

    Raises:
        PackError: When the handler's code is not installed, or the tokenizer or the weights cannot be settled.
    """
    _copy_code(folder, HANDLERS[model.task])
    target = folder / MODEL
    target.mkdir()
    pad_token_id = tokenizer_file.write(model, target / "tokenizer.json")
    _write_config(model.transformer, target / "config.json", pad_token_id)
    if found.transformer is not None:
        weights.place(found.transformer, target, unused)
    if found.torchscript is not None:
        weights.link_or_copy(found.torchscript, target / GRAPH)
    for name, layer in found.dense.items():
        (target / name).mkdir(parents=True)
        shutil.copyfile(model.root / name / "config.json", target / name / "config.json")
        weights.place(layer, target / name, ())
    _copy_documents(model.root, target)
    return target


def _copy_code(folder: Path, handler: str) -> None:
    """Only sources: what Python compiled here is of no use to another interpreter."""
    for name in (handler, _BASE_HANDLER):
        copy_handler(folder, name)
    package = Path(marvec.__file__ or "").parent
    for file in sorted(package.rglob("*.py")):
        target = folder / package.name / file.relative_to(package)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def copy_handler(folder: Path, name: str) -> None:
    """Put one of the handlers into an archive's tree.

    Raises:
        PackError: When it is not installed.
    """
    handler = Path(marvec.__file__ or "").parent.parent / name
    if not handler.is_file():
        raise PackError(f"{handler}: no such file; it belongs beside the installed package marvec")
    shutil.copyfile(handler, folder / name)


def _write_config(transformer: Path, target: Path, pad_token_id: int | None) -> None:
    """The model's config.json; a pad_token_id that it leaves to its class or to the tokenizer is written down."""
    content = json.loads((transformer / "config.json").read_text(encoding="utf-8"))
    if content.get("pad_token_id") is None:
        by_class = getattr(AutoConfig.from_pretrained(transformer, local_files_only=True), "pad_token_id", None)
        chosen = pad_token_id if by_class is None else by_class
        if chosen is not None:
            content["pad_token_id"] = chosen
    content.pop("auto_map", None)  # the model's own code is neither packed nor run
    target.write_text(json.dumps(content, indent=2), encoding="utf-8")


def _copy_documents(root: Path, target: Path) -> None:
    for pattern in _DOCUMENTS:
        for file in sorted(root.glob(pattern)):
            if file.is_file() and file.stat().st_size <= _LARGEST_DOCUMENT_BYTES:
                shutil.copyfile(file, target / file.name)
