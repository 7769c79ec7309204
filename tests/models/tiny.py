"""Seeded tiny transformers of six kinds, as plain Hugging Face or as sentence-transformers directories.

Two layers, hidden size 32, random weights large enough that every position and token counts. A folder is made once
for each distinct wish and may not be changed by a test: copy it to break it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    PretrainedConfig,
    PreTrainedModel,
)

from tests.models import tokenizers

Kind = Literal["bert", "xlm-roberta", "roberta", "distilbert", "mpnet", "modernbert"]
Pooling = Literal["mean", "cls", "lasttoken", "max"]

KINDS: tuple[Kind, ...] = ("bert", "xlm-roberta", "roberta", "distilbert", "mpnet", "modernbert")
POOLINGS: tuple[Pooling, ...] = ("mean", "cls", "lasttoken", "max")

# The key of 1_Pooling/config.json that is true for each pooling.
POOLING_KEYS = {
    "mean": "pooling_mode_mean_tokens",
    "cls": "pooling_mode_cls_token",
    "lasttoken": "pooling_mode_lasttoken",
    "max": "pooling_mode_max_tokens",
}

AutoClass = type[AutoModel] | type[AutoModelForCausalLM] | type[AutoModelForSequenceClassification]
HIDDEN = 32
MAX_TOKENS = 64


@dataclass(frozen=True)
class TinySpec:
    """What a tiny model is to be.

    Attributes:
        kind: The family, which settles the tokenizer too.
        pooling: None for a plain Hugging Face directory, else a sentence-transformers directory with this pooling.
        normalize: Whether it ends in a Normalize module; only with a pooling.
        dense: The output size of a Dense module (tanh, with bias) between pooling and Normalize, or None.
        max_seq_length: What sentence_bert_config.json says; the positions reach 64 tokens either way.
        prompts: The prompts of config_sentence_transformers.json.
        seed: Seeds the weights.
    """

    kind: Kind
    pooling: Pooling | None = None
    normalize: bool = False
    dense: int | None = None
    max_seq_length: int | None = MAX_TOKENS
    prompts: tuple[tuple[str, str], ...] = ()
    seed: int = 0


class TinyModels:
    """Makes tiny models in a folder of its own; the `tiny_models` fixture is one for the whole session."""

    def __init__(self, folder: Path) -> None:
        """Keep the models under an existing folder."""
        self._folder = folder

    def __call__(
        self,
        kind: Kind,
        *,
        pooling: Pooling | None = None,
        normalize: bool = False,
        dense: int | None = None,
        max_seq_length: int | None = MAX_TOKENS,
        prompts: dict[str, str] | None = None,
        seed: int = 0,
    ) -> Path:
        """Return the folder of a tiny model, making it at the first wish; the arguments are TinySpec's.

        Raises:
            ValueError: normalize or dense was asked of a plain directory.
        """
        spec = TinySpec(kind, pooling, normalize, dense, max_seq_length, tuple((prompts or {}).items()), seed)
        if pooling is None and (normalize or dense):
            raise ValueError("normalize and dense need a pooling: a plain directory has no modules")
        wish = sha256(json.dumps(asdict(spec)).encode()).hexdigest()[:12]
        folder = self._folder / f"{kind}-{wish}"
        if not folder.exists():
            folder.mkdir()
            _write_transformer(folder, spec)
            if pooling is not None:
                _write_modules(folder, spec, pooling)
        return folder


def _write_transformer(folder: Path, spec: TinySpec) -> None:
    """Write config.json, model.safetensors and the tokenizer's files."""
    tokenizer, special = _tokenizer(spec.kind)
    model = _model(spec, tokenizer, special)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    inputs = ["input_ids", "attention_mask"] + (["token_type_ids"] if spec.kind == "bert" else [])
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": MAX_TOKENS,
        "model_input_names": inputs,
        **special.settings(),
    }
    _write_json(folder / "tokenizer_config.json", settings)


def _tokenizer(kind: Kind) -> tuple[Tokenizer, tokenizers.Special]:
    """Return the family's kind of tokenizer, with its special tokens."""
    if kind in ("bert", "distilbert"):
        return tokenizers.wordpiece(tokenizers.BERT), tokenizers.BERT
    if kind == "mpnet":
        return tokenizers.wordpiece(tokenizers.MPNET), tokenizers.MPNET
    if kind == "xlm-roberta":
        return tokenizers.unigram(), tokenizers.ROBERTA
    if kind == "roberta":
        return tokenizers.byte_bpe(tokenizers.ROBERTA), tokenizers.ROBERTA
    return tokenizers.byte_bpe(tokenizers.BERT), tokenizers.BERT


def _model(spec: TinySpec, tokenizer: Tokenizer, special: tokenizers.Special) -> PreTrainedModel:
    """Return the encoder with seeded weights, in eval mode."""
    vocabulary = tokenizer.get_vocab()
    ids = {role: vocabulary[token] for role, token in vars(special).items()}
    sizes = {"vocab_size": len(vocabulary), "pad_token_id": ids["pad"]}
    if spec.kind == "distilbert":
        sizes |= {"dim": HIDDEN, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
    else:
        sizes |= {"hidden_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    if spec.kind in ("roberta", "xlm-roberta"):
        sizes["type_vocab_size"] = 1
    if spec.kind == "modernbert":
        sizes |= {"cls_token_id": ids["cls"], "sep_token_id": ids["sep"], "local_attention": 16}
        sizes |= {"bos_token_id": ids["cls"], "eos_token_id": ids["sep"], "global_attn_every_n_layers": 2}
    # The roberta families count positions from pad_token_id + 1 on.
    offset = ids["pad"] + 1 if spec.kind in ("roberta", "xlm-roberta", "mpnet") else 0
    config = AutoConfig.for_model(spec.kind, **sizes, max_position_embeddings=MAX_TOKENS + offset)
    return seeded(AutoModel, config, spec.seed)


def seeded(kind: AutoClass, config: PretrainedConfig, seed: int) -> PreTrainedModel:
    """Return a model of a configuration, with random weights that a seed settles, in eval mode."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = kind.from_config(config)
        # The usual 0.02 makes all vectors nearly alike: a mistake in positions or masks would hardly show.
        for weights in model.parameters():
            if weights.dim() > 1:
                torch.nn.init.normal_(weights, std=0.15)
    return model.eval()


def _write_modules(folder: Path, spec: TinySpec, pooling: Pooling) -> None:
    """Write what makes the folder a sentence-transformers directory."""
    names = ["Transformer", "Pooling"] + (["Dense"] if spec.dense else []) + (["Normalize"] if spec.normalize else [])
    modules = [
        {
            "idx": place,
            "name": str(place),
            "path": f"{place}_{name}" if place else "",
            "type": f"sentence_transformers.models.{name}",
        }
        for place, name in enumerate(names)
    ]
    _write_json(folder / "modules.json", modules)
    _write_json(
        folder / "config_sentence_transformers.json", {"prompts": dict(spec.prompts), "default_prompt_name": None}
    )
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": spec.max_seq_length, "do_lower_case": False})
    chosen = {key: name == pooling for name, key in POOLING_KEYS.items()}
    _write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": HIDDEN, **chosen})
    if spec.dense:
        _write_dense(folder / "2_Dense", spec.dense, spec.seed)


def _write_dense(folder: Path, size: int, seed: int) -> None:
    """Write a Dense module of seeded weights with tanh, as sentence-transformers saves one."""
    draw = torch.Generator().manual_seed(seed)
    weights = {
        "linear.weight": torch.randn(size, HIDDEN, generator=draw) / HIDDEN**0.5,
        "linear.bias": torch.randn(size, generator=draw) / 10,
    }
    settings = {
        "in_features": HIDDEN,
        "out_features": size,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    _write_json(folder / "config.json", settings)
    save_file(weights, folder / "model.safetensors")


def _write_json(file: Path, content: object) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
