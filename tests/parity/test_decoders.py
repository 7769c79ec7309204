"""Decoder embedders: causal attention, the last token's state, padding that their tokenizers put on the left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import processors
from transformers import AutoConfig, AutoModelForCausalLM

from archiver.options import PackOptions
from tests.models import tokenizers
from tests.models.tiny import seeded
from tests.parity import texts
from tests.parity.conftest import SidesMaker
from tests.parity.edits import chain, edit
from tests.parity.sides import Ours, Sides, require_equal, require_parity

KINDS = ("qwen3", "llama", "mistral")
MAX_TOKENS = 64
SOME = ("", "a", *texts.ORDINARY, "你好", "hello " * 300)
LAST_TOKEN = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a maker of plain tiny causal language models, whose tokenizer puts an end token after every text."""
    folder = tmp_path_factory.mktemp("decoders")

    def make(kind: str) -> Path:
        if not (folder / kind).exists():
            write_decoder(folder / kind, kind)
        return folder / kind

    return make


def write_decoder(folder: Path, kind: str) -> None:
    """Write a seeded two-layer decoder with its language model's head, as most decoders are published."""
    tokenizer = tokenizers.byte_bpe(tokenizers.BERT)
    end = tokenizers.BERT.sep
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", special_tokens=[(end, tokenizer.token_to_id(end))]
    )
    config = AutoConfig.for_model(
        kind,
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=64,
        max_position_embeddings=MAX_TOKENS,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(end),
    )
    seeded(AutoModelForCausalLM, config, 3).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": MAX_TOKENS,
        "padding_side": "left",
        "pad_token": tokenizers.BERT.pad,
        "eos_token": end,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


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


@pytest.fixture
def model(request: pytest.FixtureRequest, decoder: Callable[[str], Path], sides: SidesMaker) -> Sides:
    """Return both sides of a decoder that is a sentence-transformers directory."""
    return sides(sides.changed(decoder(request.param), embedder))


@pytest.mark.parametrize("model", KINDS, indirect=True)
def test_last_token_pooling_of_a_causal_model(model: Sides) -> None:
    assert model.ours.settings.model.pooling == ("lasttoken",)
    assert model.ours.settings.model.max_length == MAX_TOKENS
    assert model.ours.token_ids("")[-1] == model.ours.token_ids("hello " * 300)[-1]
    require_parity(model, texts.ALL)
    require_parity(model, around_limit(model.ours))


@pytest.mark.parametrize("model", KINDS, indirect=True)
def test_the_prompts_of_a_decoder(model: Sides) -> None:
    given = model.ours.vectors(SOME, promptName="query")

    require_equal(given, model.oracle.vectors(SOME, prompt_name="query"), SOME)


@pytest.mark.parametrize("pooling", ["lasttoken", "mean", "weightedmean"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_plain_decoder_with_pooling_from_the_command_line(
    kind: str, pooling: str, decoder: Callable[[str], Path], sides: SidesMaker
) -> None:
    model = sides(decoder(kind), PackOptions("-", pooling=(pooling,)))
    model.oracle.model[1].pooling_mode = pooling

    require_parity(model, [*SOME, *around_limit(model.ours)])


@pytest.mark.parametrize("kind", KINDS)
def test_a_plain_decoder_gets_the_oracles_default(kind: str, decoder: Callable[[str], Path], sides: SidesMaker) -> None:
    model = sides(decoder(kind))

    assert model.oracle.model[1].pooling_mode == "lasttoken"
    note = "pooling lasttoken, the default for a decoder: a plain directory does not say (see --pooling)"
    assert note in model.ours.notes
    require_parity(model, SOME)


def test_an_end_token_that_is_the_padding_token_too(decoder: Callable[[str], Path], sides: SidesMaker) -> None:
    """Llama and Mistral have no padding token; their embedders name the end token, which must count in a text."""
    change = chain(embedder, edit("tokenizer_config.json", pad_token=tokenizers.BERT.sep))

    require_parity(sides(sides.changed(decoder("llama"), change)), SOME)
