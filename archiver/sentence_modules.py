"""What makes a directory a sentence-transformers one: modules.json, the pooling, and the transformer's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from archiver.model_json import as_list, read_json, read_object
from marvec.errors import ModelDirError
from marvec.settings import POOLING_MODES

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


@dataclass(frozen=True)
class Modules:
    """The pipeline of modules.json.

    Attributes:
        transformer: Folder of the transformer, relative to the directory; "" is the directory itself.
        pooling: Pooling modes in order, or () where there is no modules.json.
        dense: Folders of linear layers after the pooling, in order.
        normalize: Whether vectors are given unit length at the end.
    """

    transformer: str = ""
    pooling: tuple[str, ...] = ()
    dense: tuple[str, ...] = ()
    normalize: bool = False


def read_modules(root: Path) -> Modules:
    """Follow modules.json: a Transformer, a Pooling, any Dense layers, at most one Normalize at the end.

    Raises:
        ModelDirError: When it asks for anything else.
    """
    file = root / "modules.json"
    transformer, pooling, dense, normalize = None, None, [], False
    for module in as_list(read_json(file)):
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
    return Modules(transformer, pooling, tuple(dense), normalize)


def _read_pooling(file: Path) -> tuple[str, ...]:
    config = read_object(file, "modules.json names a Pooling module there")
    if config.get("include_prompt") is False:
        raise ModelDirError(f"{file}: include_prompt is false (INSTRUCTOR models), which Marvec does not support")
    mode = config.get("pooling_mode")
    if mode is None:
        modes = [name for key, name in _LEGACY_POOLING_KEYS.items() if config.get(key)] or ["mean"]
    else:
        modes = [mode] if isinstance(mode, str) else [str(name) for name in as_list(mode)]
    for name in modes:
        if name not in POOLING_MODES:
            raise ModelDirError(f"{file}: unknown pooling mode {name!r}; known: {', '.join(POOLING_MODES)}")
    return tuple(modes)


def read_transformer_settings(transformer: Path) -> dict[str, object]:
    """Read sentence_bert_config.json (or an older name of it): max_seq_length, do_lower_case.

    Raises:
        ModelDirError: When it asks for what Marvec cannot follow.
    """
    for name in _TRANSFORMER_CONFIGS:
        file = transformer / name
        if file.is_file():
            settings = read_object(file, "")
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


def _require_inside(file: Path, path: str) -> None:
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise ModelDirError(f"{file}: path {path!r} leads out of the model directory")
