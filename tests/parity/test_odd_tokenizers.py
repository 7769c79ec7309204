"""Tokenizer settings as people really have them: what misleads, what is missing, and limits that are none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from tests.models.tiny import KINDS, MAX_TOKENS, Kind, TinyModels
from tests.parity import texts
from tests.parity.conftest import Odd, SidesMaker
from tests.parity.edits import chain, edit
from tests.parity.sides import require_equal, require_parity

OFFSET_KINDS: tuple[Kind, ...] = ("xlm-roberta", "roberta", "mpnet")
SOME = ("", "a", *texts.ORDINARY, "你好", "<pad>", "UPPER lower Title É", "hello " * 300)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_file_with_truncation_and_fixed_padding(
    kind: Kind, tiny_models: TinyModels, odd: Odd, sides: SidesMaker
) -> None:
    def bake(folder: Path) -> None:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.enable_truncation(20)
        tokenizer.enable_padding(length=20)
        tokenizer.save(str(folder / "tokenizer.json"))

    model = odd(kind, bake)
    clean = sides(tiny_models(kind, pooling="mean"))
    some = [*SOME, *texts.around_limit(clean.ours)]

    assert len(model.ours.token_ids("a")) == 3
    require_parity(model, some)
    require_equal(model.ours.vectors(some), clean.oracle.vectors(some), some)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_without_a_maximum(kind: Kind, odd: Odd) -> None:
    """Tokenizers write 1e30; the positions are the limit then, and sentence-transformers overlooks their offset."""
    change = chain(
        edit("tokenizer_config.json", model_max_length=int(1e30)),
        edit("sentence_bert_config.json", max_seq_length=None),
    )
    model = odd(kind, change)

    assert model.ours.settings.model.max_length == MAX_TOKENS
    counts = [item.full_count for item in model.ours.embedder.tokenizer.encode(SOME)]
    require_parity(model, [text for text, count in zip(SOME, counts, strict=True) if count <= MAX_TOKENS])
    model.oracle.model.max_seq_length = MAX_TOKENS
    require_parity(model, [*SOME, *texts.around_limit(model.ours)])


@pytest.mark.parametrize("kind", KINDS)
def test_no_tokenizer_maximum_at_all(kind: Kind, odd: Odd) -> None:
    change = chain(
        edit("tokenizer_config.json", model_max_length=None), edit("sentence_bert_config.json", max_seq_length=None)
    )
    model = odd(kind, change)

    assert model.ours.settings.model.max_length == MAX_TOKENS
    require_parity(model, [texts.of_length(model.ours, count) for count in (3, 63, 64)])


@pytest.mark.parametrize("kind", [*OFFSET_KINDS, "bert"])
def test_a_max_seq_length_beyond_the_positions(kind: Kind, odd: Odd) -> None:
    """sentence-transformers fails on such a text ("index 66 is out of bounds"); ours cuts at the last position."""
    model = odd(kind, edit("sentence_bert_config.json", max_seq_length=500))
    too_long = texts.of_length(model.ours, MAX_TOKENS + 1)

    assert model.ours.settings.model.max_length == MAX_TOKENS
    with pytest.raises((IndexError, RuntimeError)):
        model.oracle.vectors([too_long])
    model.oracle.model.max_seq_length = MAX_TOKENS
    require_parity(model, [*SOME, *texts.around_limit(model.ours)])


def test_five_hundred_and_thirteen_tokens_of_an_xlm_r(sides: SidesMaker, tiny_models: TinyModels) -> None:
    """huggingface/transformers#14243: 514 positions hold 512 tokens, and 513 are an index error elsewhere."""

    def widen(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        positions = "embeddings.position_embeddings.weight"
        weights[positions] = torch.randn(514, 32, generator=torch.Generator().manual_seed(1)) * 0.15
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        edit("config.json", max_position_embeddings=514)(folder)
        edit("tokenizer_config.json", model_max_length=512)(folder)
        edit("sentence_bert_config.json", max_seq_length=514)(folder)

    model = sides(sides.changed(tiny_models("xlm-roberta", pooling="mean"), widen))
    lengths = [texts.of_length(model.ours, count) for count in (510, 511, 512, 513, 514, 515, 600)]

    assert model.ours.settings.model.max_length == 512
    require_equal(model.ours.vectors(lengths[:3]), model.oracle.vectors(lengths[:3]), lengths[:3])
    for text in lengths[3:5]:
        with pytest.raises((IndexError, RuntimeError)):
            model.oracle.vectors([text])
    model.oracle.model.max_seq_length = 512
    require_parity(model, lengths)


@pytest.mark.parametrize("kind", KINDS)
def test_left_padding(kind: Kind, odd: Odd) -> None:
    require_parity(odd(kind, edit("tokenizer_config.json", padding_side="left")), texts.ALL)


@pytest.mark.parametrize("names", [["input_ids", "attention_mask"], ["input_ids", "token_type_ids", "attention_mask"]])
@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "roberta"])
def test_token_type_ids_named_or_not(kind: Kind, names: list[str], odd: Odd) -> None:
    """elastic/eland#583: multilingual-e5-small is a BERT whose tokenizer gives no token_type_ids: zeros are right."""
    require_parity(odd(kind, edit("tokenizer_config.json", model_input_names=names)), SOME)


@pytest.mark.parametrize("kind", ["bert", "distilbert", *OFFSET_KINDS])
def test_no_pad_token_id_in_config(kind: Kind, odd: Odd) -> None:
    model = odd(kind, edit("config.json", pad_token_id=None))

    assert model.ours.settings.model.max_length == MAX_TOKENS
    require_parity(model, [*SOME, *texts.around_limit(model.ours)])


@pytest.mark.parametrize("kind", KINDS)
def test_lower_casing_by_the_directory(kind: Kind, tiny_models: TinyModels, odd: Odd, sides: SidesMaker) -> None:
    some = ["UPPER lower Title", "ÉCOLE İstanbul ΣΊΣΥΦΟΣ", *SOME]
    model = odd(kind, edit("sentence_bert_config.json", do_lower_case=True))

    require_parity(model, some)
    require_parity(model, texts.ALL)
    lower = sides(tiny_models(kind, pooling="mean")).ours.vectors(["upper lower title"])
    require_equal(model.ours.vectors(some[:1]), lower, some[:1])
