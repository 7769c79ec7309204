"""The tiny models that other tests stand on: real, seeded, each of its own kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

from tests.models.tiny import HIDDEN, KINDS, Kind, TinyModels

CLASSES = {
    "bert": "BertModel",
    "xlm-roberta": "XLMRobertaModel",
    "roberta": "RobertaModel",
    "distilbert": "DistilBertModel",
    "mpnet": "MPNetModel",
    "modernbert": "ModernBertModel",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_model_loads_complete_as_its_family(tiny_models: TinyModels, kind: Kind) -> None:
    model, report = AutoModel.from_pretrained(tiny_models(kind), output_loading_info=True)
    assert type(model).__name__ == CLASSES[kind]
    assert {what: names for what, names in report.items() if names} == {}
    assert model.config.hidden_size == HIDDEN
    assert len(AutoTokenizer.from_pretrained(tiny_models(kind))) == model.config.vocab_size


@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_model_tells_texts_and_word_order_apart(tiny_models: TinyModels, kind: Kind) -> None:
    model = AutoModel.from_pretrained(tiny_models(kind)).eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_models(kind))
    with torch.inference_mode():
        first, second = (
            model(**tokenizer(text, return_tensors="pt")).last_hidden_state.mean(1) for text in ("a rose", "rose a")
        )
    assert torch.cosine_similarity(first, second).item() < 0.999


def test_the_same_wish_is_the_same_folder_and_the_same_weights(tmp_path: Path) -> None:
    first, second = TinyModels(tmp_path / "1"), TinyModels(tmp_path / "2")
    for models in (first, second):
        models._folder.mkdir()
    assert first("bert") == first("bert")
    assert (first("bert") / "model.safetensors").read_bytes() == (second("bert") / "model.safetensors").read_bytes()
    assert (first("bert") / "model.safetensors").read_bytes() != (
        first("bert", seed=1) / "model.safetensors"
    ).read_bytes()


def test_a_sentence_transformers_directory_says_what_was_asked(tiny_models: TinyModels) -> None:
    folder = tiny_models("mpnet", pooling="cls", normalize=True, dense=8, max_seq_length=20, prompts={"q": "query: "})
    modules = json.loads((folder / "modules.json").read_text())
    assert [module["path"] for module in modules] == ["", "1_Pooling", "2_Dense", "3_Normalize"]
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert [key for key, value in pooling.items() if value is True] == ["pooling_mode_cls_token"]
    assert load_file(folder / "2_Dense" / "model.safetensors")["linear.weight"].shape == (8, HIDDEN)
    assert json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"] == 20
    settings = json.loads((folder / "config_sentence_transformers.json").read_text())
    assert settings == {"prompts": {"q": "query: "}, "default_prompt_name": None}


def test_a_plain_directory_cannot_normalize(tiny_models: TinyModels) -> None:
    with pytest.raises(ValueError, match="normalize and dense need a pooling: a plain directory has no modules"):
        tiny_models("bert", normalize=True)
