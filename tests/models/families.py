"""Seeded tiny encoders of families with something of their own, as plain Hugging Face directories.

Shared or factorized layers, relative distances, other keys, odd positions; tiny.py has the six usual families.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModel

from tests.models import tokenizers
from tests.models.tiny import MAX_TOKENS, seeded
from tests.models.tokenizers import BERT, ROBERTA, Special

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
    sizes: Mapping[str, object] = field(default_factory=lambda: dict(BASE))
    positions: tuple[str, int] | None = ("max_position_embeddings", MAX_TOKENS)


_OFFSET = ("max_position_embeddings", MAX_TOKENS + 2)
FAMILIES = (
    Family("albert", tokenizers.unigram, ROBERTA, {**BASE, "embedding_size": 16}),
    Family("electra", tokenizers.wordpiece, BERT, {**BASE, "embedding_size": 16}),
    Family(
        "deberta-v2",
        tokenizers.unigram,
        ROBERTA,
        {**BASE, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False},
    ),
    Family("camembert", tokenizers.unigram, ROBERTA, positions=_OFFSET),
    Family("longformer", tokenizers.byte_bpe, ROBERTA, {**BASE, "attention_window": [16, 16]}, _OFFSET),
    Family("luke", tokenizers.byte_bpe, ROBERTA, {**BASE, "entity_vocab_size": 9, "entity_emb_size": 16}, _OFFSET),
    Family("nomic_bert", tokenizers.wordpiece, BERT),
    Family("t5", tokenizers.unigram, ROBERTA, {"d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 2, "num_heads": 4},
           None),
    Family("gpt2", tokenizers.byte_bpe, BERT, {"n_embd": 32, "n_layer": 2, "n_head": 4}, ("n_positions", MAX_TOKENS)),
)  # fmt: skip


def write(folder: Path, family: Family) -> None:
    """Write a seeded two-layer model into a folder to be made."""
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
