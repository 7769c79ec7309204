"""Decoder embedders: causal attention, the last token's state, padding that their tokenizers put on the left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archiver.options import PackOptions
from tests.models import tokenizers
from tests.models.decoders import DECODERS
from tests.models.tiny import MAX_TOKENS
from tests.parity import texts
from tests.parity.conftest import SidesMaker
from tests.parity.edits import chain, edit
from tests.parity.sides import Ours, Sides, require_equal, require_parity

NAMES = tuple(decoder.name for decoder in DECODERS)
WITHOUT_WINDOW = ("qwen3", "llama", "mistral")
SOME = ("", "a", *texts.ORDINARY, "你好", "hello " * 300)
LAST_TOKEN = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]


def embedder(folder: Path) -> None:
    """Add what makes a decoder a sentence-transformers directory, in the way of Qwen3-Embedding."""
    (folder / "modules.json").write_text(json.dumps(LAST_TOKEN))
    (folder / "1_Pooling").mkdir()
    edit("1_Pooling/config.json", word_embedding_dimension=32, pooling_mode_lasttoken=True)(folder)
    prompts = {"query": "Instruct: find the text\nQuery:", "document": ""}
    edit("config_sentence_transformers.json", prompts=prompts, default_prompt_name=None)(folder)


def around_limit(ours: Ours) -> list[str]:
    """Texts of every length around the limit, the end token included."""
    return [texts.of_length(ours, count) for count in range(MAX_TOKENS - 2, MAX_TOKENS + 3)]


@pytest.fixture(scope="module")
def models(decoder_dirs: dict[str, Path], sides: SidesMaker) -> dict[str, Sides]:
    """Return both sides of all decoders, made into sentence-transformers directories."""
    return {name: sides(sides.changed(folder, embedder)) for name, folder in decoder_dirs.items()}


@pytest.mark.parametrize("name", NAMES)
def test_last_token_pooling_of_a_causal_model(name: str, models: dict[str, Sides]) -> None:
    model = models[name]

    assert model.ours.settings.model.pooling == ("lasttoken",)
    assert model.ours.settings.model.max_length == MAX_TOKENS
    assert model.ours.token_ids("")[-1] == model.ours.token_ids("hello " * 300)[-1]
    require_parity(model, texts.ALL)
    require_parity(model, around_limit(model.ours))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_WINDOW])
def test_every_length_from_within_a_window_of_attention_to_beyond_it(name: str, models: dict[str, Sides]) -> None:
    """The window is of 16 tokens: texts that end before, at and far after its edge, in one request."""
    model = models[name]

    require_parity(model, [texts.of_length(model.ours, count) for count in range(2, MAX_TOKENS + 1)])


@pytest.mark.parametrize("name", NAMES)
def test_the_prompts_of_a_decoder(name: str, models: dict[str, Sides]) -> None:
    model = models[name]

    given = model.ours.vectors(SOME, promptName="query")

    require_equal(given, model.oracle.vectors(SOME, prompt_name="query"), SOME)


@pytest.mark.parametrize("pooling", ["lasttoken", "mean", "weightedmean"])
@pytest.mark.parametrize("name", WITHOUT_WINDOW)
def test_a_plain_decoder_with_pooling_from_the_command_line(
    name: str, pooling: str, decoder_dirs: dict[str, Path], sides: SidesMaker
) -> None:
    model = sides(decoder_dirs[name], PackOptions("-", pooling=(pooling,)))
    model.oracle.model[1].pooling_mode = pooling

    require_parity(model, [*SOME, *around_limit(model.ours)])


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_decoder_gets_the_oracles_default(name: str, decoder_dirs: dict[str, Path], sides: SidesMaker) -> None:
    model = sides(decoder_dirs[name])

    assert model.oracle.model[1].pooling_mode == "lasttoken"
    note = "pooling lasttoken, the default for a decoder: a plain directory does not say (see --pooling)"
    assert note in model.ours.notes
    require_parity(model, SOME)


def test_an_end_token_that_is_the_padding_token_too(decoder_dirs: dict[str, Path], sides: SidesMaker) -> None:
    """Llama and Mistral have no padding token; their embedders name the end token, which must count in a text."""
    change = chain(embedder, edit("tokenizer_config.json", pad_token=tokenizers.BERT.sep))

    require_parity(sides(sides.changed(decoder_dirs["llama"], change)), SOME)
