"""What a model directory holds, plain Hugging Face or sentence-transformers; the latter is followed to the letter.

The files that are read, where they are there:

- config.json, tokenizer_config.json: the transformer, at the root or in the folder that modules.json names
- modules.json: a sentence-transformers pipeline: Transformer, Pooling, any Dense layers, at most one Normalize
- sentence_bert_config.json: max_seq_length and do_lower_case
- 1_Pooling/config.json: the pooling modes
- config_sentence_transformers.json: prompts and truncate_dim
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from archiver.model_json import as_list, count, read_object, read_optional, text
from archiver.sentence_modules import Modules, read_modules, read_transformer_settings
from marvec.encoder.torchscript_encoder import HIDDEN_SIZE_KEYS
from marvec.encoder.transformers_encoder import ENCODER_HALVES
from marvec.errors import ModelDirError
from marvec.settings import ClassificationSettings, EmbeddingSettings

# Families whose first position id is pad_token_id + 1, so that many of max_position_embeddings are never used.
_OFFSET_POSITIONS = frozenset(
    {"camembert", "data2vec-text", "esm", "ibert", "longformer", "luke", "mpnet", "roberta", "roberta-prelayernorm",
     "xlm-roberta", "xlm-roberta-xl", "xmod"}
)  # fmt: skip
# Families that count distances: their n_positions is what they were trained with, not what they can take.
_RELATIVE_POSITIONS = frozenset(ENCODER_HALVES)
_CLASSIFIER = "ForSequenceClassification"
_NO_LIMIT = 1_000_000  # tokenizers write 1e30 where they know no maximum
_LENGTH_WHEN_NOTHING_SAYS = 512


@dataclass(frozen=True)
class ModelDir:
    """A model directory, read and checked.

    Attributes:
        root: The directory itself.
        transformer: Where config.json, the tokenizer and the weights lie: `root` or a folder in it.
        model_type: config.json's model_type, such as "bert".
        architectures: config.json's architectures, such as ("BertModel",).
        hidden_size: Width of the hidden states.
        vocab_size: Number of token ids.
        max_length: Longest input in tokens, special tokens included, that the directory's settings ask for.
        position_limit: Longest that the position embeddings hold; None where the family has no such limit.
        pooling: Pooling modes in order, or () where the directory says nothing.
        dense: Folders (relative to `root`) of linear layers after the pooling.
        normalize: Whether the directory asks for vectors of unit length.
        prompts: Prompt name -> text.
        default_prompt: Name of the prompt for texts that name none.
        truncate_dim: Numbers of a vector that the directory asks to keep; None for all.
        lowercase: Whether sentence-transformers lower-cases texts before tokenizing.
        sentence_transformers: Whether modules.json was there.
        task: What it is to be served as, one of options.TASKS.
    """

    root: Path
    transformer: Path
    model_type: str
    architectures: tuple[str, ...]
    hidden_size: int
    vocab_size: int
    max_length: int
    position_limit: int | None
    pooling: tuple[str, ...]
    dense: tuple[str, ...]
    normalize: bool
    prompts: Mapping[str, str]
    default_prompt: str | None
    truncate_dim: int | None
    lowercase: bool
    sentence_transformers: bool
    task: str = EmbeddingSettings.task


def read(root: Path, task: str | None = None) -> ModelDir:
    """Read a model directory.

    Args:
        root: A directory as `save_pretrained` of transformers or sentence-transformers leaves it.
        task: What it is to be served as; None for what its architecture says.

    Raises:
        ModelDirError: When a file is missing or says what Marvec cannot follow; the message names file and reason.
    """
    if not root.is_dir():
        raise ModelDirError(f"{root}: no such directory")
    sentence_transformers = (root / "modules.json").is_file()
    modules = read_modules(root) if sentence_transformers else Modules()
    transformer = root / modules.transformer
    config = read_object(transformer / "config.json", "a model directory holds config.json, a tokenizer and weights")
    if "auto_map" in config and config.get("model_type") not in CONFIG_MAPPING_NAMES:
        raise ModelDirError(
            f"{transformer / 'config.json'}: auto_map asks for the model's own Python code, which Marvec does not run; "
            "use a model whose architecture transformers itself holds"
        )
    text_settings = read_transformer_settings(transformer)
    position_limit = _position_limit(config)
    architectures = tuple(str(name) for name in as_list(config.get("architectures")))
    st_file = root / "config_sentence_transformers.json"
    st_config = read_optional(st_file)
    return ModelDir(
        root=root,
        transformer=transformer,
        model_type=text(transformer / "config.json", config, "model_type"),
        architectures=architectures,
        hidden_size=_hidden_size(transformer / "config.json", config),
        vocab_size=count(transformer / "config.json", config, "vocab_size"),
        max_length=_max_length(transformer, text_settings, position_limit),
        position_limit=position_limit,
        pooling=modules.pooling,
        dense=modules.dense,
        normalize=modules.normalize,
        prompts=_prompts(st_file, st_config),
        default_prompt=_default_prompt(st_config),
        truncate_dim=count(st_file, st_config, "truncate_dim") if st_config.get("truncate_dim") is not None else None,
        lowercase=text_settings.get("do_lower_case") is True,
        sentence_transformers=sentence_transformers,
        task=task or _task(architectures, sentence_transformers),
    )


def _task(architectures: tuple[str, ...], sentence_transformers: bool) -> str:
    classifies = any(name.endswith(_CLASSIFIER) for name in architectures) and not sentence_transformers
    return ClassificationSettings.task if classifies else EmbeddingSettings.task


def _position_limit(config: Mapping[str, object]) -> int | None:
    positions = config.get("max_position_embeddings", config.get("n_positions"))
    if config.get("model_type") in _RELATIVE_POSITIONS:
        positions = None
    if not isinstance(positions, int) or positions < 1:
        return None
    if config.get("model_type") not in _OFFSET_POSITIONS:
        return positions
    pad = config.get("pad_token_id", 1)
    return positions - (pad if isinstance(pad, int) else 1) - 1


def _max_length(transformer: Path, text_settings: Mapping[str, object], position_limit: int | None) -> int:
    """The sentence-transformers setting, else the tokenizer's; never more than the position embeddings hold."""
    wanted = text_settings.get("max_seq_length")
    if wanted is None:
        wanted = read_optional(transformer / "tokenizer_config.json").get("model_max_length")
    elif not isinstance(wanted, int) or isinstance(wanted, bool):
        raise ModelDirError(f"{transformer}: max_seq_length should be a whole number, is {wanted!r}")
    known = [int(wanted)] if isinstance(wanted, (int, float)) and 0 < wanted < _NO_LIMIT else []
    known += [] if position_limit is None else [position_limit]
    return min(known) if known else _LENGTH_WHEN_NOTHING_SAYS


def _prompts(file: Path, config: Mapping[str, object]) -> dict[str, str]:
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise ModelDirError(f"{file}: prompts is not an object of strings")
    return prompts


def _default_prompt(config: Mapping[str, object]) -> str | None:
    name = config.get("default_prompt_name")
    return name if isinstance(name, str) else None


def _hidden_size(file: Path, config: Mapping[str, object]) -> int:
    for key in HIDDEN_SIZE_KEYS:
        if key in config:
            return count(file, config, key)
    raise ModelDirError(f"{file}: no hidden size ({', '.join(HIDDEN_SIZE_KEYS)}): not a text encoder's configuration")
