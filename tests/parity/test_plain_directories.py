"""Plain Hugging Face directories, where sentence-transformers has defaults and Marvec settles them at pack time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

from archiver.options import PackOptions
from marvec.settings import POOLING_MODES
from tests.models.tiny import KINDS, Kind, TinyModels
from tests.parity import texts
from tests.parity.conftest import SidesMaker
from tests.parity.sides import Oracle, require_equal, require_parity

SOME = ("", "a", *texts.ORDINARY, "你好", "hello " * 300)
MEAN_NOTE = "pooling mean, the default: a plain directory does not say (change it with --pooling)"


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_is_that_of_sentence_transformers(kind: Kind, tiny_models: TinyModels, sides: SidesMaker) -> None:
    model = sides(tiny_models(kind))

    assert model.ours.settings.model.pooling == ("mean",)
    assert MEAN_NOTE in model.ours.notes
    require_parity(model, texts.ALL)
    require_parity(model, ["", "a", *(texts.of_length(model.ours, count) for count in (62, 63, 64))])


@pytest.mark.parametrize("pooling", [*((mode,) for mode in POOLING_MODES), ("cls", "mean")])
def test_pooling_from_the_command_line(pooling: tuple[str, ...], tiny_models: TinyModels, sides: SidesMaker) -> None:
    model = sides(tiny_models("mpnet"), PackOptions("-", pooling=pooling, normalize=True))
    modules = [model.oracle.model[0], Pooling(32, pooling), Normalize()]
    oracle = Oracle(SentenceTransformer(modules=modules, device="cpu"))

    require_equal(model.ours.vectors(SOME), oracle.vectors(SOME), SOME)


def test_pooling_from_the_command_line_goes_before_the_directorys(tiny_models: TinyModels, sides: SidesMaker) -> None:
    directory = tiny_models("bert", pooling="cls")
    model = sides(directory, PackOptions("-", pooling=("max",)))
    oracle = Oracle(SentenceTransformer(modules=[model.oracle.model[0], Pooling(32, "max")], device="cpu"))

    assert "pooling max, from --pooling, although the directory says cls" in model.ours.notes
    require_equal(model.ours.vectors(SOME), oracle.vectors(SOME), SOME)


def test_a_shorter_length_from_the_command_line(tiny_models: TinyModels, sides: SidesMaker) -> None:
    model = sides(tiny_models("xlm-roberta"), PackOptions("-", max_length=10))
    model.oracle.model.max_seq_length = 10

    require_parity(model, [*SOME, *(texts.of_length(model.ours, count) for count in range(8, 13))])


def test_fewer_dimensions_without_normalization(tiny_models: TinyModels, sides: SidesMaker) -> None:
    model = sides(tiny_models("bert"))

    given = model.ours.vectors(SOME, outputDimensionality=8)
    normalized = model.ours.vectors(SOME, outputDimensionality=8, normalize=True)

    require_equal(given, model.oracle.vectors(SOME, dimension=8), SOME)
    require_equal(normalized, model.oracle.vectors(SOME, dimension=8, normalize=True), SOME)


def test_prompts_from_the_command_line(tiny_models: TinyModels, sides: SidesMaker) -> None:
    prompts = {"query": "query: ", "passage": "passage: "}
    model = sides(tiny_models("modernbert"), PackOptions("-", prompts=prompts, default_prompt="passage"))

    require_equal(
        model.ours.vectors(SOME, promptName="query"), model.oracle.vectors([f"query: {text}" for text in SOME]), SOME
    )
    require_equal(model.ours.vectors(SOME), model.oracle.vectors([f"passage: {text}" for text in SOME]), SOME)


def test_prompts_of_a_sentence_transformers_directory(tiny_models: TinyModels, sides: SidesMaker) -> None:
    prompts = {"query": "query: ", "document": "text: a "}
    model = sides(tiny_models("xlm-roberta", pooling="mean", normalize=True, prompts=prompts))

    for name in prompts:
        given = model.ours.vectors(SOME, promptName=name)
        require_equal(given, model.oracle.vectors(SOME, prompt_name=name), SOME)
    require_parity(model, SOME)


def test_the_default_prompt_of_a_sentence_transformers_directory(tiny_models: TinyModels, sides: SidesMaker) -> None:
    def choose(folder: Path) -> None:
        file = folder / "config_sentence_transformers.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"default_prompt_name": "query"}))

    directory = tiny_models("bert", pooling="lasttoken", prompts={"query": "query: ", "plain": ""})
    model = sides(sides.changed(directory, choose))

    require_parity(model, SOME)
    given = model.ours.vectors(SOME, promptName="plain")
    require_equal(given, model.oracle.vectors(SOME, prompt_name="plain"), SOME)
    assert not np.allclose(given, model.ours.vectors(SOME), atol=1e-3)
