"""What a request for vectors may ask for beside its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marvec import json_values, parameters, prompts
from marvec.errors import RequestError
from marvec.settings import EmbeddingModel

NAMES = ("outputDimensionality", "autoTruncate", "normalize", "promptName", "taskType", "encodingFormat")
_ENCODING_FORMATS = ("float", "base64")
# What errors call a parameter: the name that the caller wrote.
_LABELS = {name: f"parameters.{name}" for name in NAMES}
_OPENAI_LABELS = {
    **{name: name for name in NAMES},
    "outputDimensionality": "dimensions",
    "encodingFormat": "encoding_format",
}
_KINDS = {"outputDimensionality": "whole", "autoTruncate": "boolean", "normalize": "boolean"}


@dataclass(frozen=True)
class EmbeddingParameters:
    """Checked parameters, with the model's defaults filled in.

    Attributes:
        dimension: Numbers in a vector.
        auto_truncate: Whether a too long input is cut instead of refused.
        normalize: Whether vectors have unit length.
        prompt: Text before an input that names no task type of its own.
        prompt_asked: Whether the request chose that prompt.
        encoding_format: "float" or "base64" (of little-endian float32).
    """

    dimension: int
    auto_truncate: bool
    normalize: bool
    prompt: str
    prompt_asked: bool
    encoding_format: str


def parse(value: object, query: Mapping[str, str], model: EmbeddingModel) -> EmbeddingParameters:
    """Check a request's parameters.

    Args:
        value: The body's `parameters`: an object, or None.
        query: Parameters from the URL or from form fields; the body's win.
        model: For defaults and bounds.

    Raises:
        RequestError: For an unknown parameter or a value out of range.
    """
    given = {} if value is None else json_values.members(value, "parameters", NAMES)
    return _checked({**parameters.of_query(query, NAMES, _KINDS), **given}, model, _LABELS)


def parse_openai(
    dimensions: object, encoding_format: object, query: Mapping[str, str], model: EmbeddingModel
) -> EmbeddingParameters:
    """The same from the fields of OpenAI's embeddings request, where null means absent."""
    given = {"outputDimensionality": dimensions, "encodingFormat": encoding_format}
    sent = {name: item for name, item in given.items() if item is not None}
    return _checked({**parameters.of_query(query, NAMES, _KINDS), **sent}, model, _OPENAI_LABELS)


def _checked(given: Mapping[str, object], model: EmbeddingModel, labels: Mapping[str, str]) -> EmbeddingParameters:
    prompt, prompt_asked = _prompt(given, model, labels)
    normalize, truncate = given.get("normalize"), given.get("autoTruncate")
    return EmbeddingParameters(
        dimension=_dimension(given.get("outputDimensionality"), model, labels["outputDimensionality"]),
        auto_truncate=True if truncate is None else json_values.boolean(truncate, labels["autoTruncate"]),
        normalize=model.normalize if normalize is None else json_values.boolean(normalize, labels["normalize"]),
        prompt=prompt,
        prompt_asked=prompt_asked,
        encoding_format=_encoding_format(given.get("encodingFormat"), labels["encodingFormat"]),
    )


def _prompt(given: Mapping[str, object], model: EmbeddingModel, labels: Mapping[str, str]) -> tuple[str, bool]:
    name, task = given.get("promptName"), given.get("taskType")
    if name is not None and task is not None:
        raise RequestError(f"{labels['promptName']} and {labels['taskType']} both choose a prompt: send one of them")
    if name is not None:
        where = labels["promptName"]
        return prompts.named(json_values.text(name, where), model, where), True
    if task is not None:
        where = labels["taskType"]
        return prompts.of_task(json_values.text(task, where), model, where), True
    return prompts.default(model), False


def _dimension(value: object, model: EmbeddingModel, where: str) -> int:
    if value is None:
        return model.served_dimension
    dimension = json_values.whole(value, where)
    if not 1 <= dimension <= model.dimension:
        raise RequestError(f"{where}: allowed are 1 to {model.dimension}, got {dimension}")
    return dimension


def _encoding_format(value: object, where: str) -> str:
    return "float" if value is None else json_values.one_of(value, where, _ENCODING_FORMATS)
