"""What the user asked of `marvec pack`, checked before any work."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from archiver.errors import PackError
from marvec.settings import DTYPES, OUTPUTS, POOLING_MODES, PROBLEM_TYPES, ClassificationSettings, EmbeddingSettings

TARGETS = ("cpu", "gpu", "any")
TASKS = (EmbeddingSettings.task, ClassificationSettings.task)
_OF_TASK = {
    EmbeddingSettings.task: ("pooling", "prompts", "default_prompt", "normalize", "openai_token_ids"),
    ClassificationSettings.task: ("labels", "problem_type", "output", "pairs"),
}
# What TorchServe takes as a model's name; the version becomes a part of a URL, so it keeps to the same letters.
_LEGAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-.]*", re.ASCII)
_ILLEGAL_RUN = re.compile(r"[^A-Za-z0-9_\-.]+", re.ASCII)
_LETTERS = "letters, digits, '_', '-' and '.', a letter or digit first"


@dataclass(frozen=True)
class PackOptions:
    """The options of `marvec pack`; None means that the model's files or Marvec's defaults decide.

    Attributes:
        model: A directory or a hub id.
        name: The archive's name, and the model's on the server.
        version: The model's version on the server.
        model_store: Folder that the .mar is written into.
        handler: What the model is served as, one of TASKS; None for what its architecture says.
        revision: Branch, tag or commit on the hub.
        pooling: Pooling modes, concatenated in this order; () follows the directory.
        prompts: Prompt name -> text, over those that the directory or the family brings.
        default_prompt: Prompt of the texts that name none; "" for no prompt.
        dtype: Precision of the forward pass.
        target: Where it will be served, one of TARGETS; None for "gpu" with float16, else for "cpu".
        calibration: Texts that int8 is fitted to, one a line.
        torchscript: A TorchScript file to serve in the place of the directory's weights.
        labels: index_to_name.json, over the one in the directory and over config.json's id2label.
        problem_type: What a classifier's outputs mean, one of PROBLEM_TYPES, over config.json's.
        output: What a classifier answers with unless a request says otherwise, one of OUTPUTS.
        pairs: Whether a classifier's input may be a pair of texts.
        max_length: Longest input in tokens.
        normalize: Whether vectors get unit length.
        batch_size: Requests that TorchServe hands over together.
        workers: Worker processes.
        max_instances: Instances in a request.
        max_request_tokens: Tokens in a request.
        max_batch_tokens: Padded tokens in one forward pass.
        max_response_bytes: Bytes in a response.
        openai_token_ids: Whether OpenAI's shape takes token ids.
        vertex_prebuilt: Whether a second archive is made, for Google's prebuilt containers.
    """

    model: str
    name: str | None = None
    version: str = "1.0"
    model_store: Path = Path("model_store")
    handler: str | None = None
    revision: str | None = None
    pooling: tuple[str, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    dtype: str = "float32"
    target: str | None = None
    calibration: Path | None = None
    torchscript: Path | None = None
    labels: Path | None = None
    problem_type: str | None = None
    output: str | None = None
    pairs: bool | None = None
    max_length: int | None = None
    normalize: bool | None = None
    batch_size: int = 16
    workers: int | None = None
    max_instances: int | None = None
    max_request_tokens: int | None = None
    max_batch_tokens: int | None = None
    max_response_bytes: int | None = None
    openai_token_ids: bool = False
    vertex_prebuilt: bool = False

    def __post_init__(self) -> None:
        if not self.model:
            raise PackError("MODEL: expected a directory or a hub id, got an empty string")
        if self.name is not None and not _LEGAL.fullmatch(self.name):
            raise PackError(f"--name: TorchServe does not take {self.name!r}; allowed are {_LETTERS}")
        if not _LEGAL.fullmatch(self.version):
            raise PackError(f"--version: {self.version!r} cannot stand in a URL; allowed are {_LETTERS}")
        for mode in self.pooling:
            if mode not in POOLING_MODES:
                raise PackError(f"--pooling: unknown mode {mode!r}; known: {', '.join(POOLING_MODES)}")
        for option, allowed in (
            ("dtype", DTYPES),
            ("target", TARGETS),
            ("handler", TASKS),
            ("problem_type", PROBLEM_TYPES),
            ("output", OUTPUTS),
        ):
            self._require_one_of(option, allowed)
        self._require_servable_dtype()
        self._require_files()
        if self.vertex_prebuilt and (self.torchscript is not None or self.settled_target == "gpu"):
            what = "--torchscript" if self.torchscript is not None else f"--target gpu ({self.dtype})"
            raise PackError(
                f"--vertex-prebuilt: goes with --target cpu or any, not with {what}: in Google's prebuilt containers "
                "OpenVINO computes, on their CPU; for the rest build an image of your own (marvec image build)"
            )
        for option in (
            "max_length",
            "batch_size",
            "workers",
            "max_instances",
            "max_request_tokens",
            "max_batch_tokens",
            "max_response_bytes",
        ):
            value = getattr(self, option)
            if value is not None and value < 1:
                raise PackError(f"--{_spelled(option)}: expected a whole number of at least 1, got {value}")

    def require_task(self, task: str) -> None:
        """Refuse what was asked for and belongs to the other task.

        Args:
            task: What the model turned out to be, one of TASKS.

        Raises:
            PackError: For the first such option.
        """
        other = next(name for name in TASKS if name != task)
        unasked = PackOptions(self.model)
        for option in _OF_TASK[other]:
            if getattr(self, option) != getattr(unasked, option):
                raise PackError(f"--{_spelled(option)}: is for {other} only; {self.model} is packed for {task}")

    def _require_one_of(self, option: str, allowed: tuple[str, ...]) -> None:
        value = getattr(self, option)
        if value is not None and value not in allowed:
            raise PackError(f"--{_spelled(option)}: expected one of {', '.join(allowed)}, got {value!r}")

    def _require_servable_dtype(self) -> None:
        if self.torchscript is not None and self.dtype != "float32":
            raise PackError(
                f"--dtype: {self.dtype} cannot be had with --torchscript: the file computes as it was traced, and is "
                "served in float32 only"
            )
        if self.dtype == "float16" and self.target in ("cpu", "any"):
            raise PackError(f"--dtype: float16 is for GPUs only; use --target gpu, or auto with --target {self.target}")
        if self.dtype == "int8" and self.target in ("gpu", "any"):
            raise PackError(f"--dtype: int8 is for CPUs only; use --target cpu, or auto with --target {self.target}")
        if self.dtype == "int8" and self.calibration is None:
            raise PackError(
                "--dtype: int8 needs --calibration, a file of texts that are like those to come, one a line"
            )
        if self.dtype != "int8" and self.calibration is not None:
            raise PackError(f"--calibration: is for --dtype int8 only, not for {self.dtype}")

    def _require_files(self) -> None:
        files = {"calibration": self.calibration, "torchscript": self.torchscript, "labels": self.labels}
        for option, file in files.items():
            if file is not None and not file.is_file():
                raise PackError(f"--{option}: {file} is not a file")

    @property
    def settled_target(self) -> str:
        """The target that was asked for or that the dtype implies."""
        return self.target or ("gpu" if self.dtype == "float16" else "cpu")

    def archive_name(self, model_id: str) -> str:
        """The name asked for, else the last part of the model's id, made legal for TorchServe.

        Raises:
            PackError: When no legal letter is left.
        """
        if self.name is not None:
            return self.name
        name = _ILLEGAL_RUN.sub("-", model_id.rsplit("/", 1)[-1]).strip("-._")
        if not name:
            raise PackError(f"{model_id}: no archive name can be made of this; give one with --name")
        return name


def _spelled(option: str) -> str:
    """As the command line has it."""
    return "prompt" if option == "prompts" else option.replace("_", "-")


def parse_prompts(pairs: list[str]) -> dict[str, str]:
    """Read `name=text` pairs, as `--prompt` takes them.

    Raises:
        PackError: When a pair has no name or no `=`, or a name comes twice.
    """
    prompts: dict[str, str] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name:
            raise PackError(f"--prompt: expected name=text, such as 'query=query: ', got {pair!r}")
        if name in prompts:
            raise PackError(f"--prompt: {name!r} is given twice")
        prompts[name] = text
    return prompts


def parse_pooling(text: str | None) -> tuple[str, ...]:
    """Read `mean` or `cls,mean`, as `--pooling` takes it; the modes are checked by PackOptions."""
    return () if text is None else tuple(mode.strip() for mode in text.split(","))
