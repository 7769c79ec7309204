"""The `handler:` section of an archive's model-config.yaml, checked once when a worker starts.

Everything that a model's files leave open was settled at pack time and stands here; a worker guesses nothing.

    task: embedding         model: EmbeddingModel         all of it: EmbeddingSettings
    task: classification    model: ClassificationModel    all of it: ClassificationSettings
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import ClassVar, TypeVar

from marvec import setting_checks as require
from marvec.errors import SettingsError

POOLING_MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
ENCODERS = ("openvino", "transformers", "torchscript")
SERVER_RESPONSE_BYTES = 67_108_864  # max_response_size in config.properties
DTYPES = ("float32", "bfloat16", "float16", "int8", "auto")

# As config.json's problem_type has them.
PROBLEM_TYPES = ("single_label_classification", "multi_label_classification", "regression")
OUTPUTS = ("score", "label")


@dataclass(frozen=True)
class ModelSettings:
    """What any model has.

    Attributes:
        id: Hub id or directory name that the archive was made from.
        revision: Commit hash on the hub; None for a local directory.
        max_length: Longest input in tokens, special tokens included.
    """

    id: str
    revision: str | None
    max_length: int

    def __post_init__(self) -> None:
        require.text("model.id", self.id)
        if self.revision is not None:
            require.text("model.revision", self.revision)
        require.whole("model.max_length", self.max_length, least=1)


@dataclass(frozen=True)
class EmbeddingModel(ModelSettings):
    """What a vector of this model is.

    Attributes:
        dimension: Numbers in a vector before any truncation.
        pooling: Pooling modes; several are concatenated in this order.
        normalize: Whether vectors have unit length unless a request says otherwise.
        default_dimension: Numbers for a request that does not ask for a dimension; None for all.
        dense: Folders (below `model/`) of the linear layers after pooling, in order.
        prompts: Prompt name -> text put before an input.
        default_prompt: Name of the prompt for inputs that name none; None for no prompt.
    """

    dimension: int
    pooling: tuple[str, ...]
    normalize: bool
    default_dimension: int | None = None
    dense: tuple[str, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require.whole("model.dimension", self.dimension, least=1)
        if self.default_dimension is not None:
            require.whole("model.default_dimension", self.default_dimension, least=1)
            if self.default_dimension > self.dimension:
                raise SettingsError(f"model.default_dimension: {self.default_dimension} is over {self.dimension}")
        require.boolean("model.normalize", self.normalize)
        object.__setattr__(self, "pooling", require.texts("model.pooling", self.pooling))
        object.__setattr__(self, "dense", require.texts("model.dense", self.dense))
        if not self.pooling:
            raise SettingsError(f"model.pooling: expected at least one of {', '.join(POOLING_MODES)}, got none")
        for mode in self.pooling:
            require.choice("model.pooling", mode, POOLING_MODES)
        for name, text in require.mapping("model.prompts", self.prompts).items():
            if not isinstance(text, str):
                raise SettingsError(f"model.prompts.{name}: expected a string, got {text!r}")
        if self.default_prompt is not None and self.default_prompt not in self.prompts:
            known = ", ".join(self.prompts) or "none"
            raise SettingsError(f"model.default_prompt: {self.default_prompt!r} is not a prompt; prompts: {known}")

    @property
    def served_dimension(self) -> int:
        """Numbers in a vector unless a request asks for another dimension."""
        return self.default_dimension or self.dimension


@dataclass(frozen=True)
class ClassificationModel(ModelSettings):
    """What the outputs of this model mean.

    Attributes:
        labels: The label of each output, in order.
        problem_type: "single_label_classification": scores are a softmax and add up to 1.
            "multi_label_classification": each is a sigmoid. "regression": the outputs are the answer.
        output: What a prediction is unless a request says otherwise: "score" is the label with its score, "label" the
            label alone.
        pairs: Whether an input may be a pair of texts.
        token_types: Whether the model tells the second text of a pair by token type ids.
    """

    labels: tuple[str, ...]
    problem_type: str
    output: str = "score"
    pairs: bool = True
    token_types: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", require.texts("model.labels", self.labels))
        if not self.labels:
            raise SettingsError("model.labels: expected one for each output of the model, got none")
        require.choice("model.problem_type", self.problem_type, PROBLEM_TYPES)
        if self.problem_type == PROBLEM_TYPES[0] and len(self.labels) == 1:
            raise SettingsError(
                f"model.problem_type: {self.problem_type} takes at least two outputs, the model has one, whose score "
                "would always be 1"
            )
        require.choice("model.output", self.output, OUTPUTS)
        if self.regression and self.output == "label":
            raise SettingsError("model.output: a regression's answer is a number, which has no label")
        require.boolean("model.pairs", self.pairs)
        require.boolean("model.token_types", self.token_types)

    @property
    def regression(self) -> bool:
        """Whether an answer is a number, or several, and no label."""
        return self.problem_type == "regression"


@dataclass(frozen=True)
class EngineSettings:
    """How the answers are computed.

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
        require.choice("engine.encoder", self.encoder, ENCODERS)
        require.choice("engine.dtype", self.dtype, DTYPES)
        if self.encoder == "torchscript" and self.dtype != "float32":
            raise SettingsError(f"engine.dtype: a TorchScript file is served in float32 only, got {self.dtype!r}")
        if self.max_batch_tokens is not None:
            require.whole("engine.max_batch_tokens", self.max_batch_tokens, least=1)


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
        require.whole("limits.max_instances", self.max_instances, least=1)
        require.whole("limits.max_request_tokens", self.max_request_tokens, least=1)
        require.whole("limits.max_response_bytes", self.max_response_bytes, least=1000)
        if self.max_response_bytes > SERVER_RESPONSE_BYTES:
            raise SettingsError(
                f"limits.max_response_bytes: at most {SERVER_RESPONSE_BYTES}, TorchServe's max_response_size, got "
                f"{self.max_response_bytes}"
            )
        require.boolean("limits.openai_token_ids", self.openai_token_ids)


@dataclass(frozen=True)
class Settings:
    """All of the `handler:` section; `read_settings` makes the kind that its task asks for."""

    task: ClassVar[str]
    model: ModelSettings
    engine: EngineSettings = field(default_factory=EngineSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)

    @property
    def token_types(self) -> bool:
        """Whether the model is told which text of a pair a token is of."""
        return False

    def to_mapping(self) -> dict[str, object]:
        """The plain lists, mappings and scalars that `read_settings` reads, ready for YAML or JSON."""
        sections = {
            group: {key: list(value) if isinstance(value, tuple) else value for key, value in section.items()}
            for group, section in asdict(self).items()
        }
        return {"task": self.task, **sections}


@dataclass(frozen=True)
class EmbeddingSettings(Settings):
    """Those of a model that gives vectors."""

    task: ClassVar[str] = "embedding"
    model: EmbeddingModel


@dataclass(frozen=True)
class ClassificationSettings(Settings):
    """Those of a model that gives labels."""

    task: ClassVar[str] = "classification"
    model: ClassificationModel

    @property
    def token_types(self) -> bool:
        """As the model says."""
        return self.model.token_types


Section = TypeVar("Section", EmbeddingModel, ClassificationModel, EngineSettings, LimitSettings)


def read_settings(section: object) -> Settings:
    """Build settings from the parsed YAML of the `handler:` section.

    Args:
        section: {"task": "...", "model": {...}, "engine": {...}, "limits": {...}}; all but the model may be absent.

    Raises:
        SettingsError: For an unknown or missing key or a value out of range; the message names key and value.
    """
    sections = require.mapping("handler", section)
    require.known("handler", sections, ("task", "model", "engine", "limits"))
    task = sections.get("task", EmbeddingSettings.task)
    require.choice("handler.task", task, (EmbeddingSettings.task, ClassificationSettings.task))
    if "model" not in sections:
        raise SettingsError("handler.model: missing; pack the model again with `marvec pack`")
    engine = _section(EngineSettings, "engine", sections.get("engine", {}))
    limits = _section(LimitSettings, "limits", sections.get("limits", {}))
    if task == ClassificationSettings.task:
        return ClassificationSettings(_section(ClassificationModel, "model", sections["model"]), engine, limits)
    return EmbeddingSettings(_section(EmbeddingModel, "model", sections["model"]), engine, limits)


def _section(cls: type[Section], name: str, section: object) -> Section:
    values = require.mapping(name, section)
    require.known(name, values, [item.name for item in fields(cls)])
    for item in fields(cls):
        if item.default is MISSING and item.default_factory is MISSING and item.name not in values:
            raise SettingsError(f"{name}.{item.name}: missing; pack the model again with `marvec pack`")
    return cls(**values)  # type: ignore[arg-type]  # __post_init__ checks each value's type
