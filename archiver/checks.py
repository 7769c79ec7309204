"""What Marvec cannot serve, told from the settings files alone."""

from __future__ import annotations

import json
from pathlib import Path

from archiver import model_dir
from archiver.errors import PackError
from archiver.model_dir import ModelDir
from marvec.encoder.transformers_encoder import ENCODER_HALVES

_OTHER_TASKS = ("ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice", "ForNextSentencePrediction")
# Encoder-decoders whose encoder is known to the library and used alone.


def read(folder: Path) -> ModelDir:
    """Read a model directory and refuse what is no embedding model.

    Raises:
        ModelDirError: When the directory is no model, or one that asks for what the library does not do.
        PackError: When it is an adapter, a classifier, or an encoder-decoder whose encoder cannot be told apart.
    """
    for file in sorted({folder / "adapter_config.json", *folder.glob("*_Transformer/adapter_config.json")}):
        if file.exists():
            raise PackError(f"{file}: an adapter (PEFT), not a whole model; merge it into its base model first")
    model = model_dir.read(folder)
    file = model.transformer / "config.json"
    if not model.sentence_transformers:
        _refuse_other_tasks(file, model.architectures)
    config = json.loads(file.read_text(encoding="utf-8"))
    if config.get("is_encoder_decoder") is True and model.model_type not in ENCODER_HALVES:
        raise PackError(
            f"{file}: {model.model_type} is an encoder-decoder; supported of those: {', '.join(ENCODER_HALVES)}"
        )
    return model


def _refuse_other_tasks(file: Path, architectures: tuple[str, ...]) -> None:
    """A plain directory of a model trained for another task gives vectors that mean nothing."""
    for name in architectures:
        if name.endswith("ForSequenceClassification"):
            raise PackError(
                f"{file}: {name} is a classifier or cross-encoder, not an embedding model; "
                "classification archives are not supported yet"
            )
        if name.endswith(_OTHER_TASKS):
            raise PackError(f"{file}: {name} is trained for another task and gives no embeddings")
