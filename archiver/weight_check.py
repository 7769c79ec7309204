"""Whether the weights are those of the model that config.json describes: transformers loads them and tells."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable
from pathlib import Path

import torch
from transformers import AutoModel, AutoModelForSequenceClassification

from archiver.errors import PackError, first_line
from archiver.model_dir import ModelDir
from archiver.weights import NOT_PLAIN, Weights
from marvec.encoder.transformers_encoder import ENCODER_HALVES
from marvec.settings import ClassificationSettings

_POOLER = re.compile(r"(^|\.)pooler\.")  # serves next-sentence prediction; many embedding models lack its weights
_LAYER_NUMBER = re.compile(r"\.(\d+)\.")
_SHOWN = 3


def check(model: ModelDir, weights: Weights | None) -> frozenset[str]:
    """Load the weights once and compare them with the configuration.

    Args:
        model: The model directory.
        weights: Its weights; None where only a TorchScript file has them.

    Returns:
        Names of the tensors in the files that the model does not read, such as a language model's head.

    Raises:
        PackError: When a tensor is missing or of another shape, or the files have layers that the model has not.
    """
    if weights is None:
        return frozenset()
    file = weights.index or weights.files[0]
    classifies = model.task == ClassificationSettings.task
    try:
        loaded, info = (AutoModelForSequenceClassification if classifies else AutoModel).from_pretrained(
            model.transformer,
            dtype=torch.bfloat16,  # half the memory, and enough for a comparison of names and shapes
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=not weights.converted,
            ignore_mismatched_sizes=True,  # so that they are listed
            output_loading_info=True,
        )
    except pickle.UnpicklingError as err:
        raise PackError(f"{file}: {NOT_PLAIN}") from err
    except Exception as err:  # a config.json can be wrong in ways that raise anything
        raise PackError(f"{file}: transformers cannot load it: {first_line(err)}") from err
    unexpected = frozenset(info["unexpected_keys"])
    missing = [key for key in info["missing_keys"] if classifies or not _unread(key, model)]
    mismatched = [
        f"{key} {list(got)} in the file, {list(want)} by config.json" for key, got, want in info["mismatched_keys"]
    ]
    modules = {name for name, _ in loaded.named_modules()}
    prefix = f"{loaded.base_model_prefix}."
    beyond = [
        key for key in unexpected if any(_beyond_the_layers(name, modules) for name in (key, key.removeprefix(prefix)))
    ]
    for fault, keys in (("missing", missing), ("of another shape", mismatched), ("of layers that it has not", beyond)):
        if keys:
            _refuse(file, model.transformer, fault, keys)
    return unexpected


def _unread(key: str, model: ModelDir) -> bool:
    """Whether embeddings do without a tensor."""
    halved = model.model_type in ENCODER_HALVES
    return _POOLER.search(key) is not None or (halved and key.startswith("decoder."))


def _beyond_the_layers(key: str, modules: set[str]) -> bool:
    """Whether a tensor belongs to a numbered layer past those of the model: then config.json counts too few."""
    found = _LAYER_NUMBER.search(key)
    return found is not None and key[: found.start()] in modules and key[: found.end() - 1] not in modules


def _refuse(file: Path, folder: Path, fault: str, keys: Iterable[str]) -> None:
    names = sorted(keys)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = ", ".join(names[:_SHOWN]) + more
    raise PackError(f"{file}: does not match {folder / 'config.json'}: tensors {fault}: {shown}")
