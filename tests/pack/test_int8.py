"""int8: a real model that loses little, the figures that tell so, and what cannot be had."""

from __future__ import annotations

import itertools
import json
import re
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch.nn.functional import cosine_similarity
from transformers import AutoConfig, AutoModel

from archiver.errors import PackError
from archiver.options import PackOptions
from marvec import encoder
from marvec.errors import SettingsError
from marvec.service import Service
from marvec.settings import EmbeddingSettings, EngineSettings, Settings, read_settings
from tests.models import tokenizers
from tests.models.tiny import TinyModels, seeded
from tests.pack.conftest import Packer, Result

OPENINGS = (
    "How long does it take until",
    "Nobody told the passengers why",
    "The manual says on its last page that",
    "Two weeks after the first complaint arrived, the shop in the old town had to admit that",
    "Ask the support team whether",
    "Yesterday",
    "According to a study of four hundred households, which was published in May and has been disputed since,",
    "It is said that",
)
ENDS = (
    "the bridge is open again.",
    "bread rises",
    "a refund reaches the customer's account, even if the card has expired in the meantime?",
    "the battery of a bicycle lasts longer in the cold",
    "roses can be eaten, provided that nothing was sprayed on them; petals taste best in the morning.",
    "version 3.12 is slower",
    "the library closes at eight",
    "rain fell on every one of the thirty days",
)
TEXTS = [f"{opening} {end}" for opening, end in itertools.product(OPENINGS, ENDS)]


@dataclass(frozen=True)
class Case:
    """A real model in int8, unpacked, and what pack returned."""

    folder: Path
    size_bytes: int
    result: Result

    @property
    def settings(self) -> Settings:
        config = yaml.safe_load((self.folder / "model-config.yaml").read_text(encoding="utf-8"))
        return read_settings(config["handler"])


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a calibration file of 64 texts."""
    file = tmp_path_factory.mktemp("calibration") / "texts.txt"
    file.write_text("\n".join(TEXTS))
    return file


@pytest.fixture(scope="module")
def case(minilm_dir: Path, texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Case:
    packer = Packer(tmp_path_factory.mktemp("store"))
    result = packer(minilm_dir, PackOptions(model=str(minilm_dir), dtype="int8", calibration=texts), name="minilm")
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(result.packed.file) as archive:
        archive.extractall(folder)
    return Case(folder, result.packed.size_bytes, result)


def test_the_user_reads_how_many_texts_are_used_and_what_it_costs(case: Case) -> None:
    told = [re.sub(r"\d\.\d{4}|\d\.\de-\d\d", "X", note) for note in case.result.notes]

    assert told[-4:] == [
        "exported: largest difference to PyTorch X on 29 inputs",
        "quantizing to int8: 52 texts set the ranges, 12 more measure the loss",
        "int8 against float32: mean cosine X, worst X, rank correlation X",
        "loading the archive as a TorchServe worker does",
    ]


def test_the_archive_is_a_quarter_of_the_size(case: Case, minilm_dir: Path) -> None:
    assert case.size_bytes < 0.3 * (minilm_dir / "model.safetensors").stat().st_size
    assert not list(case.folder.rglob("*.safetensors"))
    assert sorted(file.name for file in (case.folder / "model").iterdir()) == [
        "README.md",
        "config.json",
        "openvino_model.bin",
        "openvino_model.xml",
        "tokenizer.json",
    ]


def test_held_out_texts_lose_little_and_the_worker_tells_how_little(case: Case) -> None:
    service = Service.load(case.folder, case.settings, "cpu", response_timeout_s=120)

    told = service.describe()
    drift = json.loads((case.folder / "drift.json").read_text())
    assert told["drift"] == drift
    assert told["engine"]["encoder"] == "openvino"  # type: ignore[index]
    assert told["engine"]["dtype"] == "int8"  # type: ignore[index]
    assert drift["inputs"] == 12
    assert drift["mean_cosine"] > 0.99
    assert drift["worst_cosine"] > 0.98
    assert drift["rank_correlation"] > 0.98
    assert 1e-3 < drift["largest_difference"] < 0.1  # and yet it is not float32


def test_texts_beside_each_other_hardly_change_what_int8_gives(case: Case) -> None:
    service = Service.load(case.folder, case.settings, "cpu", response_timeout_s=120)
    jobs = [service.read({"instances": [text]}, {}, "") for text in TEXTS[::5]]

    together = torch.cat([result for result in service.compute(jobs) if isinstance(result, torch.Tensor)])
    alone = torch.cat([result for job in jobs for result in service.compute([job]) if isinstance(result, torch.Tensor)])

    assert together.shape == (13, 384)
    assert cosine_similarity(together, alone).min() > 0.9995  # a number at the edge of two steps may take the other


def test_texts_that_are_unlike_those_to_come(tiny_models: TinyModels, packer: Packer, tmp_path: Path) -> None:
    model = tiny_models("modernbert", pooling="mean")
    file = tmp_path / "texts.txt"
    monotonous = (TEXTS[i] if i % 5 == 4 else "hello " * (i + 1) for i in range(40))  # every fifth one is held out
    file.write_text("\n".join(monotonous))

    with pytest.raises(PackError) as refusal:
        packer(model, PackOptions(model=str(model), dtype="int8", calibration=file))

    assert re.sub(r"0\.\d{4}", "X", str(refusal.value)) == (
        "--dtype: int8 changes the vectors of 8 held-out texts too much: mean cosine X (at least 0.99), worst cosine X "
        "(at least 0.95), rank correlation X (at least 0.98); give more or other texts with --calibration, of the kind "
        "that will be sent, or take bfloat16 or float32"
    )
    assert not list(packer.store.iterdir())


def write_longformer(folder: Path) -> Path:
    """Write a family whose export is not faithful."""
    tokenizer, special = tokenizers.byte_bpe(tokenizers.ROBERTA), tokenizers.ROBERTA
    ids = tokenizer.get_vocab()
    config = AutoConfig.for_model(
        "longformer",
        vocab_size=len(ids),
        pad_token_id=ids[special.pad],
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        attention_window=[16, 16],
        max_position_embeddings=66,
    )
    seeded(AutoModel, config, 0).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64, **special.settings()}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def test_a_model_that_openvino_cannot_take(tmp_path: Path, texts: Path, packer: Packer) -> None:
    model = write_longformer(tmp_path)

    with pytest.raises(PackError) as refusal:
        packer(model, PackOptions(model=str(model), dtype="int8", calibration=texts))

    assert re.sub(r"\d\.\de-\d\d,", "X,", str(refusal.value)) == (
        "--dtype: int8 needs a model that converts to OpenVINO: its vectors differ by X, allowed is 1e-04"
    )
    assert not list(packer.store.iterdir())


def test_without_nncf(tiny_models: TinyModels, texts: Path, packer: Packer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nncf", None)  # as if it were not installed
    model = tiny_models("bert")

    with pytest.raises(PackError) as refusal:
        packer(model, PackOptions(model=str(model), dtype="int8", calibration=texts))

    assert str(refusal.value) == (
        "--dtype: int8 needs NNCF, which is not installed; install it with: pip install 'marvec[int8]'"
    )
    assert not packer.store.exists()


OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "no texts": (
        {"dtype": "int8"},
        "--dtype: int8 needs --calibration, a file of texts that are like those to come, one a line",
    ),
    "texts for another precision": (
        {"calibration": Path(__file__)},
        "--calibration: is for --dtype int8 only, not for float32",
    ),
    "no such file": (
        {"dtype": "int8", "calibration": Path("absent.txt")},
        "--calibration: absent.txt is not a file",
    ),
    "a GPU": (
        {"dtype": "int8", "calibration": Path(__file__), "target": "gpu"},
        "--dtype: int8 is for CPUs only; use --target cpu, or auto with --target gpu",
    ),
    "any device": (
        {"dtype": "int8", "calibration": Path(__file__), "target": "any"},
        "--dtype: int8 is for CPUs only; use --target cpu, or auto with --target any",
    ),
    "a TorchScript file": (
        {"dtype": "int8", "calibration": Path(__file__), "torchscript": Path(__file__)},
        "--dtype: int8 cannot be had with --torchscript: the file computes as it was traced, and is served in float32 "
        "only",
    ),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_do_not_go_together(case: str) -> None:
    values, expected = OPTIONS[case]

    with pytest.raises(PackError) as refusal:
        PackOptions(model="model", **values)

    assert str(refusal.value) == expected


def test_a_worker_takes_int8_for_no_other_graph(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refusal:
        encoder.load(tmp_path, EngineSettings("transformers", "int8"), "cpu", EmbeddingSettings.task)

    assert str(refusal.value) == "engine.dtype: int8 needs a graph that was packed in it, not transformers"
