"""What Marvec cannot serve, told from the settings files alone."""

from __future__ import annotations

import json
from pathlib import Path

from archiver import model_dir
from archiver.errors import PackError
from archiver.model_dir import ModelDir
from marvec.encoder.transformers_encoder import ENCODER_HALVES
from marvec.settings import EmbeddingSettings

_OTHER_TASKS = ("ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice", "ForNextSentencePrediction")


def read(folder: Path, task: str | None = None) -> ModelDir:
    """Read a model directory and refuse what is neither an embedding model nor a classifier of texts.

    Args:
        folder: The directory.
        task: What it is to be served as, one of options.TASKS; None for what its architecture says.

    Raises:
        ModelDirError: When the directory is no model, or one that asks for what the library does not do.
        PackError: When it is an adapter, for another task, or an encoder-decoder whose encoder cannot be told apart.
    """
    for file in sorted({folder / "adapter_config.json", *folder.glob("*_Transformer/adapter_config.json")}):
        if file.exists():
            raise PackError(f"{file}: an adapter (PEFT), not a whole model; merge it into its base model first")
    model = model_dir.read(folder, task)
    if model.task == EmbeddingSettings.task:
        _require_encoder(model)
    return model


def _require_encoder(model: ModelDir) -> None:
    file = model.transformer / "config.json"
    for name in model.architectures:
        # A plain directory of a model trained for another task gives vectors that mean nothing.
        if not model.sentence_transformers and name.endswith(_OTHER_TASKS):
            raise PackError(f"{file}: {name} is trained for another task and gives no embeddings")
    config = json.loads(file.read_text(encoding="utf-8"))
    if config.get("is_encoder_decoder") is True and model.model_type not in ENCODER_HALVES:
        raise PackError(
            f"{file}: {model.model_type} is an encoder-decoder; supported of those: {', '.join(ENCODER_HALVES)}"
        )
