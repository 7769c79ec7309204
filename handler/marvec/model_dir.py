"""What a model directory holds, plain Hugging Face or sentence-transformers; the latter is followed to the letter.

The files that are read, where they are there:

- config.json, tokenizer_config.json: the transformer, at the root or in the folder that modules.json names
- modules.json: a sentence-transformers pipeline: Transformer, Pooling, any Dense layers, at most one Normalize
- sentence_bert_config.json: max_seq_length and do_lower_case
- 1_Pooling/config.json: the pooling modes
- config_sentence_transformers.json: prompts
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from marvec.errors import ModelDirError
from marvec.settings import POOLING_MODES

# Families whose first position id is pad_token_id + 1, so that many of max_position_embeddings are never used.
_OFFSET_POSITIONS = frozenset(
    {"camembert", "data2vec-text", "esm", "ibert", "longformer", "luke", "mpnet", "roberta", "roberta-prelayernorm",
     "xlm-roberta", "xlm-roberta-xl", "xmod"}
)  # fmt: skip
# Families that count distances: their n_positions is what they were trained with, not what they can take.
_RELATIVE_POSITIONS = frozenset({"t5", "mt5", "umt5"})
_LEGACY_POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_TRANSFORMER_CONFIGS = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)
# What sentence-transformers hands on to transformers; these keys in it change no vector, or what Marvec does anyway.
_HANDED_ON = (
    "model_args", "model_kwargs", "config_args", "config_kwargs", "tokenizer_args", "processor_kwargs",
    "processing_kwargs",
)  # fmt: skip
_HARMLESS = frozenset(
    {"attn_implementation", "dtype", "torch_dtype", "padding_side", "trust_remote_code", "use_cache", "use_fast"}
)
_HIDDEN_SIZE_KEYS = ("hidden_size", "dim", "d_model", "n_embd")
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
        lowercase: Whether sentence-transformers lower-cases texts before tokenizing.
        sentence_transformers: Whether modules.json was there.
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
    lowercase: bool
    sentence_transformers: bool


@dataclass(frozen=True)
class _Modules:
    transformer: str = ""
    pooling: tuple[str, ...] = ()
    dense: tuple[str, ...] = ()
    normalize: bool = False


def read(root: Path) -> ModelDir:
    """Read a model directory.

    Args:
        root: A directory as `save_pretrained` of transformers or sentence-transformers leaves it.

    Raises:
        ModelDirError: When a file is missing or says what Marvec cannot follow; the message names file and reason.
    """
    if not root.is_dir():
        raise ModelDirError(f"{root}: no such directory")
    sentence_transformers = (root / "modules.json").is_file()
    modules = _read_modules(root) if sentence_transformers else _Modules()
    transformer = root / modules.transformer
    config = _read_object(transformer / "config.json", "a model directory holds config.json, a tokenizer and weights")
    if "auto_map" in config:
        raise ModelDirError(
            f"{transformer / 'config.json'}: auto_map asks for the model's own Python code, which Marvec does not run; "
            "use a model whose architecture transformers itself holds"
        )
    text_settings = _read_transformer_settings(transformer)
    position_limit = _position_limit(config)
    prompts_file = _read_optional(root / "config_sentence_transformers.json")
    return ModelDir(
        root=root,
        transformer=transformer,
        model_type=_text(transformer / "config.json", config, "model_type"),
        architectures=tuple(str(name) for name in _list(config.get("architectures"))),
        hidden_size=_hidden_size(transformer / "config.json", config),
        vocab_size=_count(transformer / "config.json", config, "vocab_size"),
        max_length=_max_length(transformer, text_settings, position_limit),
        position_limit=position_limit,
        pooling=modules.pooling,
        dense=modules.dense,
        normalize=modules.normalize,
        prompts=_prompts(root / "config_sentence_transformers.json", prompts_file),
        default_prompt=_default_prompt(prompts_file),
        lowercase=text_settings.get("do_lower_case") is True,
        sentence_transformers=sentence_transformers,
    )


def _read_modules(root: Path) -> _Modules:
    """Follow modules.json: a Transformer, a Pooling, any Dense layers, at most one Normalize at the end."""
    file = root / "modules.json"
    transformer, pooling, dense, normalize = None, None, [], False
    for module in _list(_read_json(file)):
        if not isinstance(module, dict) or not isinstance(module.get("type"), str):
            raise ModelDirError(f"{file}: expected a list of objects with `type` and `path`")
        kind, path = module["type"].rsplit(".", 1)[-1], str(module.get("path", ""))
        _require_inside(file, path)
        if kind in ("Transformer", "MLMTransformer") and transformer is None:
            transformer = path
        elif kind == "Pooling" and transformer is not None and pooling is None:
            pooling = _read_pooling(root / path / "config.json")
        elif kind == "Dense" and pooling is not None and not normalize:
            dense.append(path)
        elif kind == "Normalize" and pooling is not None:
            normalize = True
        elif kind != "Dropout":  # training only
            raise ModelDirError(
                f"{file}: module {module['type']} at this place is not supported; "
                "supported: Transformer, Pooling, then Dense layers, then Normalize"
            )
    if transformer is None or pooling is None:
        raise ModelDirError(f"{file}: names no {'Transformer' if transformer is None else 'Pooling'} module")
    return _Modules(transformer, pooling, tuple(dense), normalize)


def _read_pooling(file: Path) -> tuple[str, ...]:
    config = _read_object(file, "modules.json names a Pooling module there")
    if config.get("include_prompt") is False:
        raise ModelDirError(f"{file}: include_prompt is false (INSTRUCTOR models), which Marvec does not support")
    mode = config.get("pooling_mode")
    if mode is None:
        modes = [name for key, name in _LEGACY_POOLING_KEYS.items() if config.get(key)] or ["mean"]
    else:
        modes = [mode] if isinstance(mode, str) else [str(name) for name in _list(mode)]
    for name in modes:
        if name not in POOLING_MODES:
            raise ModelDirError(f"{file}: unknown pooling mode {name!r}; known: {', '.join(POOLING_MODES)}")
    return tuple(modes)


def _read_transformer_settings(transformer: Path) -> dict[str, object]:
    for name in _TRANSFORMER_CONFIGS:
        file = transformer / name
        if file.is_file():
            settings = _read_object(file, "")
            _refuse_unfollowed(file, settings)
            return settings
    return {}


def _refuse_unfollowed(file: Path, settings: Mapping[str, object]) -> None:
    """Newer sentence-transformers settings that would give other vectors, and that would be overlooked otherwise."""
    task = settings.get("transformer_task", "feature-extraction")
    if task != "feature-extraction":
        raise ModelDirError(f"{file}: transformer_task is {task!r}; only feature-extraction gives embeddings")
    modalities = settings.get("modality_config")
    if isinstance(modalities, dict) and ("message" in modalities or "text" not in modalities):
        raise ModelDirError(f"{file}: modality_config asks for more than plain texts, which Marvec does not support")
    for key in _HANDED_ON:
        value = settings.get(key) or {}
        unknown = sorted(set(value) - _HARMLESS) if isinstance(value, dict) else ["not an object"]
        if unknown:
            raise ModelDirError(f"{file}: {key} ({', '.join(unknown)}) is not supported")


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
        wanted = _read_optional(transformer / "tokenizer_config.json").get("model_max_length")
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
    for key in _HIDDEN_SIZE_KEYS:
        if key in config:
            return _count(file, config, key)
    raise ModelDirError(f"{file}: no hidden size ({', '.join(_HIDDEN_SIZE_KEYS)}): not a text encoder's configuration")


def _text(file: Path, config: Mapping[str, object], key: str) -> str:
    value = config.get(key)
    if not isinstance(value, str):
        raise ModelDirError(f"{file}: {key} is missing: not a transformers model's configuration")
    return value


def _count(file: Path, config: Mapping[str, object], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelDirError(f"{file}: {key} should be a positive whole number, is {value!r}")
    return value


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _require_inside(file: Path, path: str) -> None:
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise ModelDirError(f"{file}: path {path!r} leads out of the model directory")


def _read_optional(file: Path) -> dict[str, object]:
    return _read_object(file, "") if file.is_file() else {}


def _read_object(file: Path, why: str) -> dict[str, object]:
    if not file.is_file():
        raise ModelDirError(f"{file}: no such file; {why}")
    content = _read_json(file)
    if not isinstance(content, dict):
        raise ModelDirError(f"{file}: expected a JSON object")
    return content


def _read_json(file: Path) -> object:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as err:
        raise ModelDirError(f"{file}: cannot be read as JSON: {err}") from err
