"""Seeded tiny sequence classifiers of many families, as plain Hugging Face directories.

Their heads are wide enough that scores lie far from each other, and differ between texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedModel

from tests.models import tokenizers
from tests.models.families import BASE
from tests.models.tiny import MAX_TOKENS, seeded
from tests.models.tokenizers import BERT, MPNET, ROBERTA, Special

LABELS = ("Negative", "Neutral", "Positive")
_SPREAD = 1.5  # standard deviation of the logits between texts, as far as a few inputs tell


@dataclass(frozen=True)
class ClassifierFamily:
    """A family of classifiers.

    Attributes:
        kind: config.json's model_type.
        tokenizer: Makes its tokenizer.
        special: The special tokens of that.
        sizes: What config.json says of the sizes and of the positions.
        token_types: Whether its tokenizer tells the texts of a pair apart by type ids.
    """

    kind: str
    tokenizer: Callable[[Special], Tokenizer]
    special: Special
    sizes: Mapping[str, object] = field(default_factory=lambda: dict(BASE))
    token_types: bool = False


_FROM_0 = {"max_position_embeddings": MAX_TOKENS}
_NARROW = {**BASE, "embedding_size": 16, **_FROM_0}
_FROM_PAD = {"max_position_embeddings": MAX_TOKENS + 2, "type_vocab_size": 1}
_DECODER = {**BASE, "num_key_value_heads": 2, "head_dim": 8, **_FROM_0}
_HALVES = {"d_model": 32, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
           "decoder_ffn_dim": 64, "encoder_layers": 2, "decoder_layers": 2}  # fmt: skip
FAMILIES = (
    ClassifierFamily("bert", tokenizers.wordpiece, BERT, {**BASE, **_FROM_0}, token_types=True),
    ClassifierFamily("roberta", tokenizers.byte_bpe, ROBERTA, {**BASE, **_FROM_PAD}),
    ClassifierFamily("xlm-roberta", tokenizers.unigram, ROBERTA, {**BASE, **_FROM_PAD}),
    ClassifierFamily("distilbert", tokenizers.wordpiece, BERT, {"dim": 32, "n_layers": 2, "n_heads": 4,
                                                               "hidden_dim": 64, **_FROM_0}),
    ClassifierFamily("deberta-v2", tokenizers.unigram, ROBERTA, {**BASE, "relative_attention": True,
                     "pos_att_type": ["p2c", "c2p"], "position_biased_input": False, "type_vocab_size": 0}),
    ClassifierFamily("modernbert", tokenizers.byte_bpe, BERT, {**BASE, **_FROM_0, "local_attention": 16,
                                                              "global_attn_every_n_layers": 2}),
    ClassifierFamily("albert", tokenizers.unigram, ROBERTA, _NARROW, token_types=True),
    ClassifierFamily("electra", tokenizers.wordpiece, BERT, _NARROW, token_types=True),
    ClassifierFamily("mpnet", tokenizers.wordpiece, MPNET, {**BASE, "max_position_embeddings": MAX_TOKENS + 2}),
    ClassifierFamily("gpt2", tokenizers.byte_bpe, BERT, {"n_embd": 32, "n_layer": 2, "n_head": 4,
                                                        "n_positions": MAX_TOKENS}),
    ClassifierFamily("qwen3", tokenizers.byte_bpe, BERT, _DECODER),
    ClassifierFamily("bart", tokenizers.byte_bpe, ROBERTA, {**_HALVES, **_FROM_0}),
    ClassifierFamily("xlnet", tokenizers.unigram, ROBERTA, {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}),
)  # fmt: skip
BY_KIND = {family.kind: family for family in FAMILIES}


def write(folder: Path, kind: str, labels: tuple[str, ...] = LABELS, problem_type: str | None = None) -> Path:
    """Write a seeded two-layer classifier into a folder to be made, and return it."""
    family = BY_KIND[kind]
    tokenizer, special = family.tokenizer(family.special), family.special
    ids = tokenizer.get_vocab()
    config = AutoConfig.for_model(
        kind,
        vocab_size=len(ids),
        pad_token_id=ids[special.pad],
        bos_token_id=ids[special.cls],
        eos_token_id=ids[special.sep],
        decoder_start_token_id=ids[special.cls],
        id2label=dict(enumerate(labels)),
        label2id={label: i for i, label in enumerate(labels)},
        problem_type=problem_type,
        **family.sizes,
    )
    model = seeded(AutoModelForSequenceClassification, config, 5)
    _spread(model, [[ids[special.cls], *range(first, first + 9), ids[special.sep]] for first in range(10, 40, 3)])
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": MAX_TOKENS,
        "model_input_names": ["input_ids", "attention_mask", *(["token_type_ids"] if family.token_types else [])],
        **special.settings(),
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@torch.no_grad()
def _spread(model: PreTrainedModel, inputs: list[list[int]]) -> None:
    """Make the last layer steep in the directions in which inputs differ, and blind to what they share."""
    head = [module for module in model.modules() if isinstance(module, torch.nn.Linear)][-1]
    seen: list[torch.Tensor] = []
    hook = head.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    batch = torch.tensor(inputs)
    model(input_ids=batch, attention_mask=torch.ones_like(batch))
    hook.remove()
    features = seen[0][:, -1] if seen[0].ndim == 3 else seen[0]
    shared = torch.nn.functional.normalize(features.mean(dim=0), dim=0)
    head.weight -= torch.outer(head.weight @ shared, shared)
    if head.bias is not None:
        head.bias.zero_()
    head.weight *= _SPREAD / (features @ head.weight.T).std()
