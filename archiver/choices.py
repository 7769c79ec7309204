"""What any model's files leave open, settled once: id, length, engine, limits. What is the task's own lies beside."""

from __future__ import annotations

from dataclasses import dataclass

from archiver import classification_choices, embedding_choices
from archiver.errors import PackError
from archiver.model_dir import ModelDir
from archiver.options import PackOptions
from archiver.source import Source
from marvec.settings import (
    ClassificationSettings,
    EmbeddingSettings,
    EngineSettings,
    LimitSettings,
    ModelSettings,
    Settings,
)

# Decoders state tens of thousands of tokens; a single such input would take a CPU minutes.
_LONGEST_UNASKED = 8192


@dataclass(frozen=True)
class Choices:
    """The archive's settings, and a line for each choice that says where it came from."""

    settings: Settings
    notes: tuple[str, ...]


def settle(model: ModelDir, source: Source, options: PackOptions) -> Choices:
    """Settle all that a worker must not guess.

    Raises:
        PackError: When an option contradicts the model, labels do not cover its outputs, or Dense layers do not fit.
        SettingsError: When a value is out of range.
    """
    options.require_task(model.task)
    notes: list[str] = []
    common = ModelSettings(source.id, source.revision, _max_length(model, options, notes))
    standard = LimitSettings()
    engine = EngineSettings(dtype=options.dtype, max_batch_tokens=options.max_batch_tokens)
    limits = LimitSettings(
        max_instances=options.max_instances or standard.max_instances,
        max_request_tokens=options.max_request_tokens or standard.max_request_tokens,
        max_response_bytes=options.max_response_bytes or standard.max_response_bytes,
        openai_token_ids=options.openai_token_ids,
    )
    settings: Settings
    if model.task == ClassificationSettings.task:
        labels = classification_choices.settle(common, model, options, notes)
        settings = ClassificationSettings(labels, engine, limits)
    else:
        settings = EmbeddingSettings(embedding_choices.settle(common, model, options, notes), engine, limits)
    return Choices(settings, tuple(notes))


def _max_length(model: ModelDir, options: PackOptions, notes: list[str]) -> int:
    if options.max_length is not None:
        if model.position_limit is not None and options.max_length > model.position_limit:
            raise PackError(
                f"--max-length: {options.max_length} is more than the {model.position_limit} positions of the model"
            )
        return options.max_length
    if model.max_length > _LONGEST_UNASKED:
        notes.append(f"at most {_LONGEST_UNASKED} tokens, though the model takes {model.max_length} (see --max-length)")
        return _LONGEST_UNASKED
    return model.max_length
