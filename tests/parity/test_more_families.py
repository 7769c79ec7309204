"""Families with something of their own: shared or factorized layers, relative distances, other keys, odd positions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModel

from tests.models import tokenizers
from tests.models.tiny import seeded
from tests.models.tokenizers import Special
from tests.parity import texts
from tests.parity.conftest import SidesMaker
from tests.parity.edits import edit
from tests.parity.sides import require_parity

MAX_TOKENS = 64
SOME = ("", "a", *texts.ORDINARY, "<pad>", "[PAD]", "hello " * 300)
BASE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


@dataclass(frozen=True)
class Family:
    """A family of encoders.

    Attributes:
        kind: config.json's model_type.
        tokenizer: Makes its tokenizer.
        special: The special tokens of that.
        sizes: What config.json says of the sizes.
        positions: Key and value of the number of positions; None where distances count.
    """

    kind: str
    tokenizer: Callable[[Special], Tokenizer]
    special: Special
    sizes: dict[str, object] = field(default_factory=lambda: dict(BASE))
    positions: tuple[str, int] | None = ("max_position_embeddings", MAX_TOKENS)


ROBERTA, BERT = tokenizers.ROBERTA, tokenizers.BERT
OFFSET = ("max_position_embeddings", MAX_TOKENS + 2)
FAMILIES = (
    Family("albert", tokenizers.unigram, ROBERTA, {**BASE, "embedding_size": 16}),
    Family("electra", tokenizers.wordpiece, BERT, {**BASE, "embedding_size": 16}),
    Family(
        "deberta-v2",
        tokenizers.unigram,
        ROBERTA,
        {**BASE, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False},
    ),
    Family("camembert", tokenizers.unigram, ROBERTA, positions=OFFSET),
    Family("longformer", tokenizers.byte_bpe, ROBERTA, {**BASE, "attention_window": [16, 16]}, OFFSET),
    Family("luke", tokenizers.byte_bpe, ROBERTA, {**BASE, "entity_vocab_size": 9, "entity_emb_size": 16}, OFFSET),
    Family("t5", tokenizers.unigram, ROBERTA, {"d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 2, "num_heads": 4},
           None),
    Family("gpt2", tokenizers.byte_bpe, BERT, {"n_embd": 32, "n_layer": 2, "n_head": 4}, ("n_positions", MAX_TOKENS)),
)  # fmt: skip


def write(folder: Path, family: Family) -> None:
    """Write a seeded two-layer model as a plain directory."""
    tokenizer, special = family.tokenizer(family.special), family.special
    ids = tokenizer.get_vocab()
    config = AutoConfig.for_model(
        family.kind,
        vocab_size=len(ids),
        pad_token_id=ids[special.pad],
        bos_token_id=ids[special.cls],
        eos_token_id=ids[special.sep],
        **family.sizes,
        **dict([family.positions] if family.positions else []),
    )
    seeded(AutoModel, config, 5).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": MAX_TOKENS,
        "model_input_names": ["input_ids", "attention_mask"],
        **special.settings(),
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
def test_a_plain_directory(family: Family, sides: SidesMaker, tmp_path: Path) -> None:
    write(tmp_path / "model", family)
    model = sides(tmp_path / "model")

    assert model.ours.settings.model.max_length == MAX_TOKENS
    require_parity(model, [*SOME, *texts.around_limit(model.ours)])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
def test_a_tokenizer_without_a_maximum(family: Family, sides: SidesMaker, tmp_path: Path) -> None:
    """The positions are the limit; a family without any gets 512, where the oracle would take a text of any length."""
    write(tmp_path / "model", family)
    edit("tokenizer_config.json", model_max_length=None)(tmp_path / "model")
    model = sides(tmp_path / "model")
    limit = MAX_TOKENS if family.positions else 512

    assert model.ours.settings.model.max_length == limit
    model.oracle.model.max_seq_length = limit
    require_parity(model, [*SOME, *texts.around_limit(model.ours)])
