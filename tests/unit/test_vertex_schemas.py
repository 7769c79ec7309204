"""The schema files: where they go, and that they name what the handler knows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from marvec import classification_parameters, embedding_parameters, instances, prompts
from marvec.settings import OUTPUTS, ClassificationSettings, EmbeddingSettings
from vertex import schemas
from vertex.setting_values import Task

TASKS: tuple[Task, ...] = get_args(Task)
NAMES = {"embedding": embedding_parameters.NAMES, "classification": classification_parameters.NAMES}


def load(task: Task, name: str) -> dict[str, object]:
    """Return one of the schemas."""
    content = yaml.safe_load(schemas.read(task, name))
    assert isinstance(content, dict)
    return content


def test_the_tasks_are_those_of_the_handler() -> None:
    assert (EmbeddingSettings.task, ClassificationSettings.task) == TASKS


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("folder", ["gs://bucket/models/schemas", "gs://bucket/models/schemas/"])
def test_the_addresses_of_a_folder(folder: str, task: Task) -> None:
    uris = schemas.uris(folder, task)
    assert [uri.rpartition("/")[2] for uri in uris] == list(schemas.FILES)
    (place,) = {uri.rpartition("/")[0] for uri in uris}
    assert re.fullmatch(r"gs://bucket/models/schemas/marvec-[0-9a-f]{12}", place)
    assert uris == (uris.instance, uris.parameters, uris.prediction)


def test_a_bucket_alone_is_a_folder() -> None:
    uri = schemas.uris("gs://bucket", "embedding").instance
    assert re.fullmatch(r"gs://bucket/marvec-[0-9a-f]{12}/instance\.yaml", uri)


def test_each_task_has_a_folder_of_its_own() -> None:
    assert len({schemas.uris("gs://bucket", task) for task in TASKS}) == len(TASKS)


def test_another_content_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = schemas.uris("gs://bucket", "embedding")
    (tmp_path / "embedding").mkdir()
    for name in schemas.FILES:
        (tmp_path / "embedding" / name).write_bytes(schemas.read("embedding", name))
    monkeypatch.setattr(schemas, "_FOLDER", tmp_path)
    assert schemas.uris("gs://bucket", "embedding") == before
    (tmp_path / "embedding" / "prediction.yaml").write_text("type: array\n")
    assert schemas.uris("gs://bucket", "embedding").instance != before.instance


def test_there_is_no_file_that_is_not_put() -> None:
    folder = Path(schemas.__file__).with_name("schemas")
    there = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    assert there == sorted(f"{task}/{name}" for task in TASKS for name in schemas.FILES)


@pytest.mark.parametrize("task", TASKS)
def test_the_parameters_are_those_of_the_handler(task: Task) -> None:
    properties = load(task, "parameters.yaml")["properties"]
    assert isinstance(properties, dict)
    assert tuple(properties) == NAMES[task]


def test_the_choices_are_those_of_the_handler() -> None:
    properties = load("classification", "parameters.yaml")["properties"]
    assert isinstance(properties, dict)
    assert properties["output"]["enum"] == [*OUTPUTS, None]
    assert properties["scores"]["enum"] == [*classification_parameters._SCORES, None]


@pytest.mark.parametrize(("task", "pairs"), [("embedding", ()), ("classification", (instances._PAIR_KEY,))])
def test_the_keys_of_instances_are_those_of_the_handler(task: Task, pairs: tuple[str, ...]) -> None:
    forms = load(task, "instance.yaml")["oneOf"]
    assert isinstance(forms, list)
    keys = dict.fromkeys(key for form in forms for key in form.get("properties", {}))
    text, *others = instances._TEXT_KEYS
    assert list(keys) == [text, *pairs, *others, *instances._CONTENT_EXTRAS]


@pytest.mark.parametrize(("task", "places"), [("embedding", 2), ("classification", 1)])
def test_the_task_types_are_those_of_the_handler(task: Task, places: int) -> None:
    known = [*prompts._PROMPTS_OF_TASK, None]
    named = re.findall(
        r"enum:\n((?: +- \S+\n)+)",
        (schemas.read(task, "instance.yaml") + schemas.read(task, "parameters.yaml")).decode(),
    )
    assert [yaml.safe_load(one) for one in named] == [known] * places
