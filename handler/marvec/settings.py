"""The `handler:` section of an archive's model-config.yaml, checked once when a worker starts.

Everything that a model's files leave open was settled at pack time and stands here; a worker guesses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import TypeVar

from marvec.errors import SettingsError

POOLING_MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
ENCODERS = ("openvino", "transformers", "torchscript")
SERVER_RESPONSE_BYTES = 67_108_864  # max_response_size in config.properties
DTYPES = ("float32", "bfloat16", "float16", "int8", "auto")

Section = TypeVar("Section", "ModelSettings", "EngineSettings", "LimitSettings")


@dataclass(frozen=True)
class ModelSettings:
    """What a vector of this model is.

    Attributes:
        id: Hub id or directory name that the archive was made from.
        revision: Commit hash on the hub; None for a local directory.
        dimension: Numbers in a vector before any truncation.
        default_dimension: Numbers for a request that does not ask for a dimension; None for all.
        max_length: Longest input in tokens, special tokens included.
        pooling: Pooling modes; several are concatenated in this order.
        dense: Folders (below `model/`) of the linear layers after pooling, in order.
        normalize: Whether vectors have unit length unless a request says otherwise.
        prompts: Prompt name -> text put before an input.
        default_prompt: Name of the prompt for inputs that name none; None for no prompt.
    """

    id: str
    dimension: int
    max_length: int
    pooling: tuple[str, ...]
    normalize: bool
    default_dimension: int | None = None
    revision: str | None = None
    dense: tuple[str, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None

    def __post_init__(self) -> None:
        _require_text("model.id", self.id)
        if self.revision is not None:
            _require_text("model.revision", self.revision)
        _require_int("model.dimension", self.dimension, least=1)
        if self.default_dimension is not None:
            _require_int("model.default_dimension", self.default_dimension, least=1)
            if self.default_dimension > self.dimension:
                raise SettingsError(f"model.default_dimension: {self.default_dimension} is over {self.dimension}")
        _require_int("model.max_length", self.max_length, least=1)
        _require_bool("model.normalize", self.normalize)
        object.__setattr__(self, "pooling", _texts("model.pooling", self.pooling))
        object.__setattr__(self, "dense", _texts("model.dense", self.dense))
        if not self.pooling:
            raise SettingsError(f"model.pooling: expected at least one of {', '.join(POOLING_MODES)}, got none")
        for mode in self.pooling:
            _require_choice("model.pooling", mode, POOLING_MODES)
        _require_prompts(self.prompts)
        if self.default_prompt is not None and self.default_prompt not in self.prompts:
            known = ", ".join(self.prompts) or "none"
            raise SettingsError(f"model.default_prompt: {self.default_prompt!r} is not a prompt; prompts: {known}")

    @property
    def served_dimension(self) -> int:
        """Numbers in a vector unless a request asks for another dimension."""
        return self.default_dimension or self.dimension


@dataclass(frozen=True)
class EngineSettings:
    """How the vectors are computed.

    Attributes:
        encoder: Which encoder runs the model; on CUDA, transformers runs what openvino runs on the CPU.
        dtype: Precision of the forward pass; pooling is always float32. "auto" takes bfloat16 or float16 where the
            device computes in it natively; int8 is what `marvec pack` made of an openvino graph.
        max_batch_tokens: Tokens in one forward pass, padding included; None lets the encoder choose for its device.
    """

    encoder: str = "transformers"
    dtype: str = "float32"
    max_batch_tokens: int | None = None

    def __post_init__(self) -> None:
        _require_choice("engine.encoder", self.encoder, ENCODERS)
        _require_choice("engine.dtype", self.dtype, DTYPES)
        if self.encoder == "torchscript" and self.dtype != "float32":
            raise SettingsError(f"engine.dtype: a TorchScript file is served in float32 only, got {self.dtype!r}")
        if self.max_batch_tokens is not None:
            _require_int("engine.max_batch_tokens", self.max_batch_tokens, least=1)


@dataclass(frozen=True)
class LimitSettings:
    """What one request may ask for; more is refused with a 413 before any work.

    Attributes:
        max_instances: Instances in a request.
        max_request_tokens: Tokens in a request after truncation. A worker lowers it to what it can compute within half
            of TorchServe's response timeout, and describe tells the number in force.
        max_response_bytes: Size of a response. Over TorchServe's max_response_size the worker would be killed.
        openai_token_ids: Whether `/v1/embeddings` takes token ids. Clients send those of another tokenizer by default.
    """

    max_instances: int = 2048
    max_request_tokens: int = 300_000
    max_response_bytes: int = 64_000_000
    openai_token_ids: bool = False

    def __post_init__(self) -> None:
        _require_int("limits.max_instances", self.max_instances, least=1)
        _require_int("limits.max_request_tokens", self.max_request_tokens, least=1)
        _require_int("limits.max_response_bytes", self.max_response_bytes, least=1000)
        if self.max_response_bytes > SERVER_RESPONSE_BYTES:
            raise SettingsError(
                f"limits.max_response_bytes: at most {SERVER_RESPONSE_BYTES}, TorchServe's max_response_size, got "
                f"{self.max_response_bytes}"
            )
        _require_bool("limits.openai_token_ids", self.openai_token_ids)


@dataclass(frozen=True)
class Settings:
    """All of the `handler:` section."""

    model: ModelSettings
    engine: EngineSettings = field(default_factory=EngineSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)

    @classmethod
    def from_mapping(cls, mapping: object) -> Settings:
        """Build settings from the parsed YAML of the `handler:` section.

        Args:
            mapping: {"model": {...}, "engine": {...}, "limits": {...}}; the last two may be absent.

        Raises:
            SettingsError: For an unknown or missing key or a value out of range; the message names key and value.
        """
        sections = _require_mapping("handler", mapping)
        _refuse_unknown("handler", sections, [item.name for item in fields(cls)])
        if "model" not in sections:
            raise SettingsError("handler.model: missing; pack the model again with `marvec pack`")
        return cls(
            model=_section(ModelSettings, "model", sections["model"]),
            engine=_section(EngineSettings, "engine", sections.get("engine", {})),
            limits=_section(LimitSettings, "limits", sections.get("limits", {})),
        )

    def to_mapping(self) -> dict[str, dict[str, object]]:
        """The plain lists, mappings and scalars that `from_mapping` reads, ready for YAML or JSON."""
        return {
            group: {key: list(value) if isinstance(value, tuple) else value for key, value in section.items()}
            for group, section in asdict(self).items()
        }


def _section(cls: type[Section], name: str, mapping: object) -> Section:
    values = _require_mapping(name, mapping)
    _refuse_unknown(name, values, [item.name for item in fields(cls)])
    for item in fields(cls):
        if item.default is MISSING and item.default_factory is MISSING and item.name not in values:
            raise SettingsError(f"{name}.{item.name}: missing; pack the model again with `marvec pack`")
    return cls(**values)  # type: ignore[arg-type]  # __post_init__ checks each value's type


def _require_mapping(key: str, value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise SettingsError(f"{key}: expected a mapping, got {value!r}")
    return {str(name): item for name, item in value.items()}


def _refuse_unknown(section: str, values: Mapping[str, object], known: Sequence[str]) -> None:
    for name in values:
        if name not in known:
            raise SettingsError(f"{section}.{name}: unknown key; known keys: {', '.join(known)}")


def _require_text(key: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise SettingsError(f"{key}: expected a non-empty string, got {value!r}")


def _require_int(key: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SettingsError(f"{key}: expected a whole number of at least {least}, got {value!r}")


def _require_bool(key: str, value: object) -> None:
    if not isinstance(value, bool):
        raise SettingsError(f"{key}: expected true or false, got {value!r}")


def _require_choice(key: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise SettingsError(f"{key}: expected one of {', '.join(choices)}, got {value!r}")


def _require_prompts(prompts: object) -> None:
    for name, text in _require_mapping("model.prompts", prompts).items():
        if not isinstance(text, str):
            raise SettingsError(f"model.prompts.{name}: expected a string, got {text!r}")


def _texts(key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
        raise SettingsError(f"{key}: expected a list of strings, got {value!r}")
    return tuple(value)
