"""What cannot be packed is refused by one sentence that names the file and the reason, and leaves nothing behind."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from archiver.errors import PackError
from archiver.options import PackOptions
from marvec.errors import MarvecError
from tests.models.tiny import TinyModels
from tests.pack.conftest import Edit, Packer


def set_config(**values: object) -> Callable[[Path], object]:
    """Return a change of config.json."""

    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | values))

    return change


def set_weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], object]:
    """Return a change of model.safetensors."""

    def edit(folder: Path) -> None:
        file = folder / "model.safetensors"
        weights = load_file(file)
        change(weights)
        save_file(weights, file, metadata={"format": "pt"})

    return edit


def write(name: str, text: str) -> Callable[[Path], object]:
    """Return a change that writes a file."""

    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)

    return change


def remove(*names: str) -> Callable[[Path], object]:
    """Return a change that removes files."""

    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return change


def reshape(weights: dict[str, torch.Tensor]) -> None:
    weights["embeddings.position_embeddings.weight"] = torch.zeros(7, 32)


class Bomb:
    """Would run code when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch exploded",)


def pickled_code(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"embeddings.word_embeddings.weight": Bomb()}, folder / "pytorch_model.bin")


def lost_shard(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": "model-00001-of-00002.safetensors"}}
    write("model.safetensors.index.json", json.dumps(index))(folder)


def add_token(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens(["<of another model>"])
    tokenizer.save(str(folder / "tokenizer.json"))


def slow_only(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    write("vocab.txt", "a 1\nb 2\n")(folder)
    write("bpe.codes", "a b 1\n")(folder)
    write("tokenizer_config.json", json.dumps({"tokenizer_class": "PhobertTokenizer"}))(folder)


def wrong_dense(folder: Path) -> None:
    modules = json.loads(MODULES)
    modules.append({"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"})
    write("modules.json", json.dumps(modules))(folder)
    write("1_Pooling/config.json", json.dumps({"pooling_mode": "mean"}))(folder)
    write("2_Dense/config.json", json.dumps({"in_features": 99, "out_features": 8}))(folder)


POOLING = json.dumps({"word_embedding_dimension": 32, "pooling_mode": "median"})
MODULES = json.dumps(
    [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
)


def unknown_pooling(folder: Path) -> None:
    write("modules.json", MODULES)(folder)
    write("1_Pooling/config.json", POOLING)(folder)


REFUSALS = {
    "no model": (
        remove("config.json"),
        "{model}/config.json: no such file; a model directory holds config.json, a tokenizer and weights",
    ),
    "classifier without its head": (
        set_config(architectures=["BertForSequenceClassification"]),
        "{model}/model.safetensors: does not match {model}/config.json: tensors missing: classifier.bias, "
        "classifier.weight",
    ),
    "other task": (
        set_config(architectures=["BertForQuestionAnswering"]),
        "{model}/config.json: BertForQuestionAnswering is trained for another task and gives no embeddings",
    ),
    "adapter": (
        write("adapter_config.json", "{}"),
        "{model}/adapter_config.json: an adapter (PEFT), not a whole model; merge it into its base model first",
    ),
    "encoder-decoder": (
        set_config(model_type="bart", is_encoder_decoder=True),
        "{model}/config.json: bart is an encoder-decoder; supported of those: t5, mt5, umt5",
    ),
    "own code": (
        set_config(model_type="own", auto_map={"AutoModel": "modeling.Model"}),
        "{model}/config.json: auto_map asks for the model's own Python code, which Marvec does not run; "
        "use a model whose architecture transformers itself holds",
    ),
    "no attention heads": (
        set_config(num_attention_heads=0),
        "{model}/model.safetensors: transformers cannot load it: integer modulo by zero",
    ),
    "a tokenizer's length in words": (
        write(
            "tokenizer_config.json",
            json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": "x"}),
        ),
        "{model}: the tokenizer fails on a text: '>' not supported between instances of 'int' and 'str'",
    ),
    "a config.json nested too deeply": (
        write("config.json", "[" * 100_000),
        "{model}/config.json: cannot be read as JSON: maximum recursion depth exceeded while decoding a JSON array "
        "from a unicode string",
    ),
    "unknown pooling": (
        unknown_pooling,
        "{model}/1_Pooling/config.json: unknown pooling mode 'median'; "
        "known: cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken",
    ),
    "no weights": (
        remove("model.safetensors"),
        "{model}: no weights: expected model.safetensors, model.safetensors.index.json, pytorch_model.bin "
        "or pytorch_model.bin.index.json",
    ),
    "no tokenizer": (
        remove("tokenizer.json"),
        "{model}: no tokenizer: expected one of tokenizer.json, vocab.txt, vocab.json, *.model, *.tiktoken",
    ),
    "missing tensor": (
        set_weights(lambda weights: weights.pop("encoder.layer.1.output.dense.weight")),
        "{model}/model.safetensors: does not match {model}/config.json: tensors missing: "
        "encoder.layer.1.output.dense.weight",
    ),
    "another shape": (
        set_weights(reshape),
        "{model}/model.safetensors: does not match {model}/config.json: tensors of another shape: "
        "embeddings.position_embeddings.weight [7, 32] in the file, [64, 32] by config.json",
    ),
    "more layers": (
        set_config(num_hidden_layers=1),
        "{model}/model.safetensors: does not match {model}/config.json: tensors of layers that it has not: "
        "encoder.layer.1.attention.output.LayerNorm.bias, encoder.layer.1.attention.output.LayerNorm.weight, "
        "encoder.layer.1.attention.output.dense.bias and 13 more",
    ),
    "truncated weights": (
        lambda folder: (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:5000]),
        "{model}/model.safetensors: transformers cannot load it: "
        "Error while deserializing header: incomplete metadata, file not fully covered",
    ),
    "weights that are not numbers": (
        set_weights(lambda weights: weights["embeddings.LayerNorm.weight"].fill_(math.nan)),
        "{model}: a golden text's answer has a number that is not finite",
    ),
    "pickled code": (
        pickled_code,
        "{model}/pytorch_model.bin: damaged, or more than a plain mapping of tensors: "
        "nothing else is unpickled, since it could run code",
    ),
    "index without its shard": (
        lost_shard,
        "{model}/model.safetensors.index.json: names the shard 'model-00001-of-00002.safetensors', which is not there",
    ),
    "another model's tokenizer": (
        add_token,
        "{model}: the tokenizer has ids up to 142, but config.json's vocab_size is 142: they do not belong together",
    ),
    "damaged tokenizer": (
        write("tokenizer.json", "{"),
        "{model}: transformers cannot load the tokenizer: "
        "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ),
    "tokenizer without a fast form": (
        slow_only,
        "{model}: PhobertTokenizer has no fast form (tokenizers library), which Marvec needs",
    ),
    "Dense of another width": (
        wrong_dense,
        "{model}/2_Dense/config.json: in_features is 99, but what comes before gives 32 numbers",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_directory_that_cannot_be_packed(case: str, broken: Edit, packer: Packer) -> None:
    change, expected = REFUSALS[case]
    model = broken(change)

    with pytest.raises(MarvecError) as refusal:
        packer(model)

    assert str(refusal.value) == expected.replace("{model}", str(model))
    assert not packer.store.exists() or not list(packer.store.iterdir())


OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "longer than the model": (
        {"max_length": 65},
        "--max-length: 65 is more than the 64 positions of the model",
    ),
    "unknown default prompt": (
        {"default_prompt": "query", "prompts": {"q": "query: "}},
        "--default-prompt: 'query' is not a prompt; prompts: q",
    ),
    "another task's": (
        {"output": "label"},
        "--output: is for classification only; {model} is packed for embedding",
    ),
    "a task that the model is not for": (
        {"handler": "classification"},
        "{model}/model.safetensors: does not match {model}/config.json: tensors missing: classifier.bias, "
        "classifier.weight",
    ),
    "revision of a directory": (
        {"revision": "main"},
        "--revision: {model} is a directory, which has none; leave the option out",
    ),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_an_option_that_does_not_fit_the_model(case: str, tiny_models: TinyModels, packer: Packer) -> None:
    values, expected = OPTIONS[case]
    model = tiny_models("bert")

    with pytest.raises(PackError) as refusal:
        packer(model, replace(PackOptions(model=str(model)), **values))

    assert str(refusal.value) == expected.replace("{model}", str(model))
    assert not packer.store.exists() or not list(packer.store.iterdir())


def test_a_file_is_no_model(tiny_models: TinyModels, packer: Packer) -> None:
    file = tiny_models("bert") / "config.json"

    with pytest.raises(PackError) as refusal:
        packer(file)

    assert str(refusal.value) == f"{file}: a file; expected a model directory or a hub id"


def test_a_path_that_leads_nowhere_is_not_looked_up_on_a_hub(packer: Packer, tmp_path: Path) -> None:
    with pytest.raises(PackError) as refusal:
        packer(tmp_path / "absent")

    assert str(refusal.value) == (
        f"{tmp_path}/absent: no such directory, and not a hub id such as intfloat/multilingual-e5-small"
    )


def test_a_folder_in_the_archives_place(tiny_models: TinyModels, packer: Packer) -> None:
    (packer.store / "tiny.mar").mkdir(parents=True)

    with pytest.raises(PackError) as refusal:
        packer(tiny_models("bert"))

    assert str(refusal.value) == f"{packer.store}/tiny.mar: a folder is in the archive's place"
    assert [path.name for path in packer.store.iterdir()] == ["tiny.mar"]
