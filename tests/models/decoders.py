"""Seeded tiny causal language models, as plain Hugging Face directories; their tokenizer ends every text.

With and without a window of attention that is much shorter than the longest text, and one that sees both ways.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tokenizers import processors
from transformers import AutoConfig, AutoModelForCausalLM

from tests.models import tokenizers
from tests.models.tiny import MAX_TOKENS, seeded

_WINDOW_TOKENS = 16
_BY_LAYER = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": _WINDOW_TOKENS}


@dataclass(frozen=True)
class Decoder:
    """A decoder that is used for embeddings.

    Attributes:
        name: What the tests call it.
        kind: config.json's model_type.
        attention: What config.json says of the attention.
    """

    name: str
    kind: str
    attention: Mapping[str, object] = field(default_factory=dict)


DECODERS = (
    Decoder("qwen3", "qwen3"),
    Decoder("llama", "llama"),
    Decoder("mistral", "mistral"),
    Decoder("qwen3-window", "qwen3", {**_BY_LAYER, "use_sliding_window": True}),
    Decoder("mistral-window", "mistral", {"sliding_window": _WINDOW_TOKENS}),
    Decoder("gemma3-window", "gemma3_text", _BY_LAYER),
    Decoder("gemma3-both-ways", "gemma3_text", {**_BY_LAYER, "use_bidirectional_attention": True}),
)


def write(folder: Path, decoder: Decoder) -> None:
    """Write a seeded two-layer decoder with its language model's head, as most decoders are published."""
    tokenizer = tokenizers.byte_bpe(tokenizers.BERT)
    end = tokenizers.BERT.sep
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", special_tokens=[(end, tokenizer.token_to_id(end))]
    )
    config = AutoConfig.for_model(
        decoder.kind,
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
        **decoder.attention,
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
