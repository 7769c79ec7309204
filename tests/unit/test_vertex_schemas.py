"""The schema files: where they go, and that they name what the handler knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from marvec import embedding_parameters, instances, prompts
from vertex import schemas


def load(name: str) -> dict[str, object]:
    """Return one of the schemas."""
    content = yaml.safe_load(schemas.read(name))
    assert isinstance(content, dict)
    return content


@pytest.mark.parametrize("folder", ["gs://bucket/models/schemas", "gs://bucket/models/schemas/"])
def test_the_addresses_of_a_folder(folder: str) -> None:
    uris = schemas.uris(folder)
    assert [uri.rpartition("/")[2] for uri in uris] == list(schemas.FILES)
    (place,) = {uri.rpartition("/")[0] for uri in uris}
    assert re.fullmatch(r"gs://bucket/models/schemas/marvec-[0-9a-f]{12}", place)
    assert uris == (uris.instance, uris.parameters, uris.prediction)


def test_a_bucket_alone_is_a_folder() -> None:
    assert re.fullmatch(r"gs://bucket/marvec-[0-9a-f]{12}/instance\.yaml", schemas.uris("gs://bucket").instance)


def test_another_content_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = schemas.uris("gs://bucket")
    for name in schemas.FILES:
        (tmp_path / name).write_bytes(schemas.read(name))
    monkeypatch.setattr(schemas, "_FOLDER", tmp_path)
    assert schemas.uris("gs://bucket") == before
    (tmp_path / "prediction.yaml").write_text("type: array\n")
    assert schemas.uris("gs://bucket").instance != before.instance


def test_there_is_no_file_that_is_not_put() -> None:
    folder = Path(schemas.__file__).with_name("schemas")
    assert sorted(file.name for file in folder.iterdir()) == sorted(schemas.FILES)


def test_the_parameters_are_those_of_the_handler() -> None:
    properties = load("parameters.yaml")["properties"]
    assert isinstance(properties, dict)
    assert tuple(properties) == embedding_parameters.NAMES


def test_the_keys_of_instances_are_those_of_the_handler() -> None:
    forms = load("instance.yaml")["oneOf"]
    assert isinstance(forms, list)
    keys = [key for form in forms for key in form.get("properties", {})]
    assert keys == [*instances._TEXT_KEYS, *instances._CONTENT_EXTRAS]


def test_the_task_types_are_those_of_the_handler() -> None:
    known = [*prompts._PROMPTS_OF_TASK, None]
    named = re.findall(
        r"enum:\n((?: +- \S+\n)+)", (schemas.read("instance.yaml") + schemas.read("parameters.yaml")).decode()
    )
    assert [yaml.safe_load(one) for one in named] == [known, known]
