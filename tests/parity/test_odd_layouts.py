"""Weights and layouts as people really have them: pickles, half precision, Dense layers, folders old and new."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from marvec.errors import ModelDirError
from tests.models.tiny import KINDS, Kind, TinyModels
from tests.parity import texts
from tests.parity.conftest import Odd, SidesMaker
from tests.parity.edits import chain, edit, recast
from tests.parity.sides import consult, require_equal, require_parity

SOME = ("", "a", *texts.ORDINARY, "你好", "<pad>", "UPPER lower Title É", "hello " * 300)


@pytest.mark.parametrize("kind", KINDS)
def test_pickled_weights(kind: Kind, odd: Odd) -> None:
    def pickle(folder: Path) -> None:
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()

    require_parity(odd(kind, pickle), SOME)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_a_half_precision_checkpoint_is_computed_in_float32(kind: Kind, dtype: torch.dtype, odd: Odd) -> None:
    """StarTrail-org/LEANN#405: transformers 5 would compute in the checkpoint's own precision."""
    named = edit("config.json", dtype=str(dtype).removeprefix("torch."))
    model = odd(kind, chain(recast("model.safetensors", dtype), named))

    assert model.ours.settings.engine.dtype == "float32"
    require_parity(model, [*SOME, *texts.around_limit(model.ours)])


def test_a_half_precision_dense_layer(tiny_models: TinyModels, sides: SidesMaker) -> None:
    half = recast("2_Dense/model.safetensors", torch.float16)
    model = sides(sides.changed(tiny_models("bert", pooling="cls", dense=24), half))

    require_parity(model, SOME)


@pytest.mark.parametrize("activation", ["torch.nn.modules.linear.Identity", "torch.nn.modules.activation.GELU", None])
@pytest.mark.parametrize("bias", [True, False])
def test_dense_layers_of_other_kinds(
    activation: str | None, bias: bool, tiny_models: TinyModels, sides: SidesMaker
) -> None:
    def change(folder: Path) -> None:
        edit("2_Dense/config.json", activation_function=activation, bias=bias)(folder)
        file = folder / "2_Dense" / "model.safetensors"
        weights = load_file(file)
        save_file({name: weights[name] for name in weights if bias or name == "linear.weight"}, file)

    model = sides(sides.changed(tiny_models("bert", pooling="mean", dense=24), change))

    require_parity(model, SOME)


def test_two_dense_layers(tiny_models: TinyModels, sides: SidesMaker) -> None:
    def change(folder: Path) -> None:
        shutil.copytree(folder / "2_Dense", folder / "3_Dense")
        modules = json.loads((folder / "modules.json").read_text())
        modules.append({**modules[2], "idx": 3, "name": "3", "path": "3_Dense"})
        (folder / "modules.json").write_text(json.dumps(modules))

    model = sides(sides.changed(tiny_models("bert", pooling="mean", dense=32), change))

    assert model.ours.settings.model.dense == ("2_Dense", "3_Dense")
    require_parity(model, SOME)


def test_the_older_layout_with_the_transformer_in_a_folder(tiny_models: TinyModels, sides: SidesMaker) -> None:
    def move(folder: Path) -> None:
        inner = folder / "0_Transformer"
        inner.mkdir()
        for file in list(folder.iterdir()):
            if file.is_file() and file.name not in ("modules.json", "config_sentence_transformers.json"):
                file.rename(inner / file.name)
        modules = json.loads((folder / "modules.json").read_text())
        modules[0]["path"] = "0_Transformer"
        (folder / "modules.json").write_text(json.dumps(modules))

    prompts = {"query": "query: "}
    directory = sides.changed(tiny_models("mpnet", pooling="max", normalize=True, prompts=prompts), move)
    model = sides(directory)

    require_parity(model, [*SOME, *texts.around_limit(model.ours)])
    given = model.ours.vectors(SOME, promptName="query")
    require_equal(given, model.oracle.vectors(SOME, prompt_name="query"), SOME)


@pytest.mark.parametrize("kind", KINDS)
def test_a_directory_as_the_oracle_itself_saves_it(
    kind: Kind, tiny_models: TinyModels, sides: SidesMaker, tmp_path: Path
) -> None:
    prompts = {"query": "query: ", "document": ""}
    saved = tmp_path / "saved"
    oracle = consult(tiny_models(kind, pooling="cls" if kind == "bert" else "mean", prompts=prompts))
    oracle.model.max_seq_length = 40
    oracle.model.save_pretrained(str(saved))
    model = sides(saved)

    assert model.ours.settings.model.max_length == 40
    require_parity(model, [*SOME, *texts.around_limit(model.ours)])
    require_equal(model.ours.vectors(SOME), oracle.vectors(SOME), SOME)


def test_without_its_pooling_settings_a_directory_is_refused(tiny_models: TinyModels, sides: SidesMaker) -> None:
    directory = sides.changed(
        tiny_models("bert", pooling="mean"), lambda folder: (folder / "1_Pooling" / "config.json").unlink()
    )
    with pytest.raises(ModelDirError) as caught:
        sides(directory)
    file = directory / "1_Pooling" / "config.json"
    assert str(caught.value) == f"{file}: no such file; modules.json names a Pooling module there"


def test_a_lone_text_and_a_padded_one_differ_without_a_mask(tiny_models: TinyModels, sides: SidesMaker) -> None:
    """The tiny models are no easy test: without its mask a padded text is far from its own vector."""
    model = sides(tiny_models("bert", pooling="mean")).oracle
    (ids,) = model.model.tokenizer(["a rose"])["input_ids"]
    padded = torch.tensor([ids + [0] * 20])

    with torch.inference_mode():
        hidden = model.model[0].auto_model(input_ids=padded).last_hidden_state[0, : len(ids)].mean(dim=0)

    assert np.abs(hidden.numpy() - model.vectors(["a rose"])[0]).max() > 0.05
