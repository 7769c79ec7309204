"""Older forms of a model end as the same archive: pickled weights, shards, slow tokenizers, odd file times."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertTokenizerFast,
    PreTrainedModel,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
)

from archiver import checks, staging, tokenizer_file, weight_check, weights
from archiver.options import PackOptions
from archiver.workspace import workspace
from tests.models.tiny import TinyModels
from tests.pack.conftest import Edit, Packer


def staged(model: Path, folder: Path) -> Path:
    """Stage a directory, as pack does before it archives, and return the model's part."""
    read = checks.read(model)
    found = staging.find_weights(read)
    folder.mkdir()
    return staging.stage(folder, read, found, weight_check.check(read, found.transformer))


def to_pickle(folder: Path, *, legacy: bool = False) -> dict[str, torch.Tensor]:
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=not legacy)
    return state


@pytest.mark.parametrize("legacy", [False, True])
def test_a_pickle_becomes_safetensors_with_the_same_numbers(legacy: bool, broken: Edit, tmp_path: Path) -> None:
    model = broken(lambda folder: to_pickle(folder, legacy=legacy))
    expected = torch.load(model / "pytorch_model.bin", weights_only=True)

    result = load_file(staged(model, tmp_path / "staged") / "model.safetensors")

    assert set(result) == set(expected)
    assert all(torch.equal(result[name], expected[name]) for name in expected)


def test_shards_of_pickles_become_shards_of_safetensors(broken: Edit, tmp_path: Path) -> None:
    def shard(folder: Path) -> None:
        state = to_pickle(folder)
        (folder / "pytorch_model.bin").unlink()
        names = sorted(state)
        files = {"pytorch_model-00001-of-00002.bin": names[:20], "pytorch_model-00002-of-00002.bin": names[20:]}
        for file, part in files.items():
            torch.save({name: state[name] for name in part}, folder / file)
        weight_map = {name: file for file, part in files.items() for name in part}
        index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))

    folder = staged(broken(shard), tmp_path / "staged")
    index = json.loads((folder / "model.safetensors.index.json").read_text())

    assert sorted(file.name for file in folder.glob("*model*")) == [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
    ]
    for name, file in index["weight_map"].items():
        assert name in load_file(folder / file)
    with pytest.raises(StopIteration):
        next(folder.glob("*.bin"))


def test_a_language_model_with_a_tied_head_packs_to_the_vectors_of_its_encoder(
    tiny_models: TinyModels, packer: Packer, tmp_path: Path
) -> None:
    plain = tiny_models("bert")
    head = tmp_path / "masked-lm"
    head.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (head / name).write_bytes((plain / name).read_bytes())
    state = AutoModelForMaskedLM.from_pretrained(plain).state_dict()  # the decoder shares the embeddings' memory
    torch.save(state, head / "pytorch_model.bin")

    from_pickle = packer(head, PackOptions("-", target="gpu"), name="head").packed
    from_safetensors = packer(plain, PackOptions("-", target="gpu"), name="plain").packed

    with zipfile.ZipFile(from_pickle.file) as left, zipfile.ZipFile(from_safetensors.file) as right:
        assert json.loads(left.read("golden.json")) == json.loads(right.read("golden.json"))
        left.extract("model/model.safetensors", tmp_path)
    kept = load_file(tmp_path / "model" / "model.safetensors")
    assert "bert.embeddings.word_embeddings.weight" in kept
    assert "cls.predictions.decoder.weight" not in kept
    assert "cls.predictions.transform.dense.weight" in kept


def test_tensors_in_one_memory_that_the_model_reads_are_both_kept(tmp_path: Path) -> None:
    shared = torch.arange(4.0)
    torch.save({"a": shared, "b": shared, "head": shared, "c": torch.ones(2, 3).T}, tmp_path / "pytorch_model.bin")
    target = tmp_path / "target"
    target.mkdir()

    weights.place(weights.find(tmp_path), target, {"head"})

    result = load_file(target / "model.safetensors")
    assert set(result) == {"a", "b", "c"}
    assert torch.equal(result["a"], shared)
    assert torch.equal(result["b"], shared)
    assert result["c"].shape == (3, 2)


def test_a_slow_tokenizer_becomes_a_tokenizer_file_with_the_same_ids(broken: Edit, tmp_path: Path) -> None:
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rose", "##s", "grow", "##ing", "é", "日", "本", "!"]

    def slow(folder: Path) -> None:
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True, "strip_accents": False})
        )

    model = broken(slow)
    tokenizer = Tokenizer.from_file(str(staged(model, tmp_path / "staged") / "tokenizer.json"))

    encoding = tokenizer.encode("Roses  growing É 日本! xyz")
    assert encoding.tokens == ["[CLS]", "rose", "##s", "grow", "##ing", "é", "日", "本", "!", "[UNK]", "[SEP]"]
    assert encoding.ids == list(AutoTokenizer.from_pretrained(model)("Roses  growing É 日本! xyz")["input_ids"])
    assert isinstance(AutoTokenizer.from_pretrained(model), BertTokenizerFast)


def test_baked_in_truncation_and_padding_are_switched_off(broken: Edit, tmp_path: Path) -> None:
    def bake(folder: Path) -> None:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.enable_truncation(5)
        tokenizer.enable_padding(length=5)
        tokenizer.save(str(folder / "tokenizer.json"))

    folder = staged(broken(bake), tmp_path / "staged")

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.truncation is None
    assert tokenizer.padding is None
    assert len(tokenizer.encode("a b c d e f g h").ids) > 8


@pytest.mark.parametrize("normalizer", [True, False])
def test_lower_casing_goes_before_the_normalizer(normalizer: bool, broken: Edit, tmp_path: Path) -> None:
    def change(folder: Path) -> None:
        content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        content["normalizer"] = {"type": "NFC"} if normalizer else None
        (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64, "do_lower_case": True}))

    folder = staged(broken(change), tmp_path / "staged")

    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    steps = [{"type": "Lowercase"}, {"type": "NFC"}] if normalizer else [{"type": "Lowercase"}]
    assert content["normalizer"] == {"type": "Sequence", "normalizers": steps}


def test_a_pad_token_that_config_json_leaves_open_is_written_down(broken: Edit, tmp_path: Path) -> None:
    def forget(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        config["pad_token_id"] = None
        (folder / "config.json").write_text(json.dumps(config))

    model = broken(forget)
    pad_id = tokenizer_file.write(checks.read(model), tmp_path / "tokenizer.json")

    assert pad_id == Tokenizer.from_file(str(model / "tokenizer.json")).token_to_id("[PAD]")
    assert json.loads((staged(model, tmp_path / "staged") / "config.json").read_text())["pad_token_id"] == pad_id


def test_files_from_before_1980_which_no_zip_can_hold_are_copied(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for file in (old, new):
        file.write_bytes(b"weights")
    os.utime(old, (0, 0))

    for file in (old, new):
        weights.link_or_copy(file, tmp_path / f"{file.name}-placed")

    assert old.stat().st_nlink == 1
    assert new.stat().st_nlink == 2
    assert (tmp_path / "old-placed").stat().st_mtime > 1_000_000_000


def test_safetensors_of_another_dtype_stay_as_they_are(broken: Edit, tmp_path: Path) -> None:
    def halve(folder: Path) -> None:
        state = {name: tensor.half() for name, tensor in load_file(folder / "model.safetensors").items()}
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})

    model = broken(halve)

    assert (staged(model, tmp_path / "staged") / "model.safetensors").read_bytes() == (
        model / "model.safetensors"
    ).read_bytes()


@pytest.mark.parametrize("kind", [T5EncoderModel, T5ForConditionalGeneration])
def test_of_t5_the_encoder_is_enough(kind: type[PreTrainedModel], tiny_models: TinyModels, tmp_path: Path) -> None:
    source, model = tiny_models("xlm-roberta"), tmp_path / "model"
    tokens = Tokenizer.from_file(str(source / "tokenizer.json")).get_vocab_size()
    sizes = {"vocab_size": tokens, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    kind(T5Config(**sizes)).save_pretrained(model)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (model / name).write_bytes((source / name).read_bytes())

    assert (staged(model, tmp_path / "staged") / "model.safetensors").stat().st_nlink == 2


def test_a_workspace_is_hidden_and_gone_at_the_end(tmp_path: Path) -> None:
    with workspace(tmp_path / "store", "tiny") as folder:
        assert folder.parent == tmp_path / "store"
        assert folder.name.startswith(".tiny-")
    assert list((tmp_path / "store").iterdir()) == []
