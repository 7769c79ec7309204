"""The label of each output of a classifier: from index_to_name.json (TorchServe's name for it), or from config.json."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from archiver.errors import PackError
from archiver.model_dir import ModelDir
from archiver.model_json import read_object

FILE = "index_to_name.json"
_TOLD = 12
_SHOWN = 5
_MOST_DIGITS = 6
_UNFIT = ("Cc", "Cs", "Zl", "Zp")  # YAML does not bring them back, or UTF-8 cannot hold them


def read(model: ModelDir, given: Path | None, count: int, notes: list[str]) -> tuple[str, ...]:
    """Read the labels of a classifier.

    Args:
        model: The model directory.
        given: A mapping of the user's own; None for the directory's.
        count: Outputs of the model, as config.json has it.
        notes: Gets a line that says where the labels came from.

    Returns:
        The label of each output, in order.

    Raises:
        PackError: When a mapping does not give each output one label.
        ModelDirError: When a file is not a JSON object.
    """
    config_file = model.transformer / "config.json"
    id2label = read_object(config_file, "").get("id2label")
    if id2label is not None:
        if not isinstance(id2label, dict):
            raise PackError(f"{config_file}: id2label is not an object of index -> label")
        # transformers counts the outputs by it, so it must be whole even where other labels take its place.
        in_config = _covering(id2label, _count(id2label, count), f"{config_file}: id2label")
    else:
        in_config = tuple(f"LABEL_{i}" for i in range(count))  # as transformers names them
    file = given or _beside(model)
    if file is not None:
        names = _covering(read_object(file, ""), count, str(file))
        source = "--labels" if given is not None else f"the directory's {FILE}"
    else:
        names, source = in_config, "config.json" if id2label is not None else "transformers' defaults"
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    notes.append(f"labels {', '.join(names[:_TOLD])}{more}, from {source}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        notes.append(f"several outputs share a label: {', '.join(twice)}; their scores are not added up")
    return names


def _beside(model: ModelDir) -> Path | None:
    places = (model.root / FILE, model.transformer / FILE)
    return next((file for file in places if file.is_file()), None)


def _count(mapping: Mapping[str, object], count: int) -> int:
    """Outputs, of which a mapping with gaps knows fewer than it names."""
    return max([count, *(int(index) + 1 for index in mapping if _is_index(index))])


def _is_index(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def _covering(mapping: Mapping[str, object], count: int, where: str) -> tuple[str, ...]:
    allowed = f"expected are the indexes 0 to {count - 1}"
    names: dict[int, str] = {}
    for index, name in mapping.items():
        if not _is_index(index) or int(index) >= count:
            raise PackError(f"{where}: {index[:20]!r} is no output of the model; {allowed}, each with its label")
        if not isinstance(name, str) or not name:
            raise PackError(f"{where}: the label of {index} should be a non-empty string, is {name!r}")
        if any(unicodedata.category(character) in _UNFIT for character in name):
            raise PackError(
                f"{where}: the label of {index}, {name!a}, has a control character or half of a surrogate pair"
            )
        if int(index) in names:
            raise PackError(f"{where}: the index {int(index)} stands twice")
        names[int(index)] = name
    if len(names) < count:
        missing = list(itertools.islice((str(index) for index in range(count) if index not in names), _SHOWN))
        more = count - len(names) - len(missing)
        shown = ", ".join(missing) + (f" and {more} more" if more else "")
        raise PackError(f"{where}: no label for {shown}; {allowed}, each with its label")
    return tuple(names[index] for index in range(count))
