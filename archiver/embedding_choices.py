"""What the files of an embedding model leave open: pooling, prompts, normalisation, dimension."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from archiver import families
from archiver.errors import PackError
from archiver.model_dir import ModelDir
from archiver.options import PackOptions
from marvec.settings import EmbeddingModel, ModelSettings


def settle(common: ModelSettings, model: ModelDir, options: PackOptions, notes: list[str]) -> EmbeddingModel:
    """Settle what a vector of the model is.

    Args:
        common: What is settled of any model.
        model: The model directory.
        options: What was asked for.
        notes: Gets a line for each choice.

    Raises:
        PackError: When an option contradicts the model, or Dense layers do not fit.
        SettingsError: When a value is out of range.
    """
    pooling = _pooling(model, options, notes)
    prompts, default_prompt = _prompts(model, common.id, options, notes)
    return EmbeddingModel(
        id=common.id,
        revision=common.revision,
        max_length=common.max_length,
        dimension=_dimension(model, pooling),
        default_dimension=_default_dimension(model, notes),
        pooling=pooling,
        dense=model.dense,
        normalize=_normalize(model, options, notes),
        prompts=prompts,
        default_prompt=default_prompt,
    )


def _pooling(model: ModelDir, options: PackOptions, notes: list[str]) -> tuple[str, ...]:
    said = "+".join(model.pooling)
    if options.pooling:
        against = f", although the directory says {said}" if said and options.pooling != model.pooling else ""
        notes.append(f"pooling {'+'.join(options.pooling)}, from --pooling{against}")
        return options.pooling
    if model.pooling:
        notes.append(f"pooling {said}, from the directory's modules.json")
        return model.pooling
    if model.architectures and model.architectures[0].endswith("ForCausalLM"):  # as sentence-transformers does
        notes.append("pooling lasttoken, the default for a decoder: a plain directory does not say (see --pooling)")
        return ("lasttoken",)
    notes.append("pooling mean, the default: a plain directory does not say (change it with --pooling)")
    return ("mean",)


def _normalize(model: ModelDir, options: PackOptions, notes: list[str]) -> bool:
    if options.normalize is not None:
        notes.append(f"vectors {'' if options.normalize else 'not '}normalized, from the command line")
        return options.normalize
    if not model.sentence_transformers:
        notes.append("vectors not normalized: a plain directory does not ask for it (change it with --normalize)")
    return model.normalize


def _prompts(
    model: ModelDir, model_id: str, options: PackOptions, notes: list[str]
) -> tuple[Mapping[str, str], str | None]:
    """The directory's prompts, else the family's; single ones replaced or added by --prompt.

    sentence-transformers writes empty prompts into every directory: those alone say nothing.
    """
    prompts = dict(model.prompts)
    family = families.find(model_id)
    if any(prompts.values()):
        notes.append(f"prompts {_listed(prompts)}, from the directory's config_sentence_transformers.json")
    elif family is not None:
        prompts = dict(family.prompts)
        notes.append(f"prompts {_listed(prompts)}, as the {family.name} model card has them")
    if family is not None and "query" in prompts:
        tasks = {name: prompts["query"] for name in family.query_tasks if name not in prompts}
        if tasks:
            prompts |= tasks
            notes.append(f"prompts {_listed(tasks)}, since the {family.name} model card puts the query prompt there")
    if options.prompts:
        prompts |= options.prompts
        notes.append(f"prompts {_listed(options.prompts)}, from --prompt")
    default = model.default_prompt if options.default_prompt is None else options.default_prompt or None
    if default is not None:
        if default not in prompts:
            told = "default_prompt_name" if options.default_prompt is None else "--default-prompt"
            raise PackError(f"{told}: {default!r} is not a prompt; prompts: {', '.join(prompts) or 'none'}")
        notes.append(f"prompt {default!r} stands before every text that names none")
    return prompts, default


def _default_dimension(model: ModelDir, notes: list[str]) -> int | None:
    if model.truncate_dim is not None:
        notes.append(f"{model.truncate_dim} numbers a vector unless a request asks for more, as truncate_dim says")
    return model.truncate_dim


def _listed(prompts: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={text!r}" for name, text in prompts.items())


def _dimension(model: ModelDir, pooling: tuple[str, ...]) -> int:
    """Follow the vector's width through the pooling and the Dense layers."""
    width = model.hidden_size * len(pooling)
    for name in model.dense:
        file = model.root / name / "config.json"
        expected, given = _dense_features(file)
        if expected != width:
            raise PackError(f"{file}: in_features is {expected}, but what comes before gives {width} numbers")
        width = given
    return width


def _dense_features(file: Path) -> tuple[int, int]:
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        return int(config["in_features"]), int(config["out_features"])
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise PackError(f"{file}: cannot be read as a Dense module with in_features and out_features: {err!r}") from err
