"""What the files of a classifier leave open: labels, what its outputs mean, and how it takes pairs of texts."""

from __future__ import annotations

import inspect

from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, PretrainedConfig

from archiver import labels
from archiver.errors import PackError, first_line
from archiver.model_dir import ModelDir
from archiver.options import PackOptions
from marvec.settings import PROBLEM_TYPES, ClassificationModel, ModelSettings

_SINGLE, _MULTI, _REGRESSION = PROBLEM_TYPES


def settle(common: ModelSettings, model: ModelDir, options: PackOptions, notes: list[str]) -> ClassificationModel:
    """Settle what the outputs of the model mean.

    Args:
        common: What is settled of any model.
        model: The model directory.
        options: What was asked for.
        notes: Gets a line for each choice.

    Raises:
        PackError: When the labels do not cover the outputs, or transformers has no such classifier.
        SettingsError: When a value is out of range.
    """
    config = _config(model)
    names = labels.read(model, options.labels, config.num_labels, notes)
    problem_type = _problem_type(config, options, notes)
    pairs = options.pairs is not False
    if options.output is not None:
        notes.append(f"predictions of {options.output!r} form unless a request says otherwise, from --output")
    return ClassificationModel(
        id=common.id,
        revision=common.revision,
        max_length=common.max_length,
        labels=names,
        problem_type=problem_type,
        output=options.output or "score",
        pairs=pairs,
        token_types=pairs and _token_types(model, config),
    )


def _config(model: ModelDir) -> PretrainedConfig:
    try:
        return AutoConfig.from_pretrained(model.transformer, local_files_only=True, trust_remote_code=False)
    except Exception as err:  # a config.json can be wrong in ways that raise anything
        file = model.transformer / "config.json"
        raise PackError(f"{file}: transformers cannot read it: {first_line(err)}") from err


def _problem_type(config: PretrainedConfig, options: PackOptions, notes: list[str]) -> str:
    """As transformers' pipeline decides, where config.json says nothing."""
    said = {
        _SINGLE: "one label is right, scores are a softmax",
        _MULTI: "each label is right or not, scores are sigmoids",
        _REGRESSION: "a regression, answers are numbers",
    }
    if options.problem_type is not None:
        notes.append(f"{said[options.problem_type]}: from --problem-type")
        return options.problem_type
    if config.problem_type in PROBLEM_TYPES:
        notes.append(f"{said[config.problem_type]}: problem_type in config.json")
        return str(config.problem_type)
    if config.problem_type is not None:
        raise PackError(
            f"config.json: problem_type is {config.problem_type!r}, known are {', '.join(PROBLEM_TYPES)}; say which "
            "one with --problem-type"
        )
    default = _MULTI if config.num_labels == 1 else _SINGLE
    notes.append(f"{said[default]}: the default, since config.json has no problem_type (change it with --problem-type)")
    return default


def _token_types(model: ModelDir, config: PretrainedConfig) -> bool:
    """Whether transformers would tell the model which text of a pair a token is of."""
    try:
        kind = AutoModelForSequenceClassification._model_mapping[type(config)]
    except KeyError as err:
        file = model.transformer / "config.json"
        raise PackError(f"{file}: transformers has no sequence classifier of the kind {model.model_type!r}") from err
    taken = "token_type_ids" in inspect.signature(kind.forward).parameters
    if not taken or getattr(config, "type_vocab_size", 2) < 2:
        return False
    try:
        tokenizer = AutoTokenizer.from_pretrained(model.transformer, local_files_only=True, trust_remote_code=False)
    except Exception:  # what is wrong with it is told when it is staged
        return False
    return "token_type_ids" in tokenizer.model_input_names
