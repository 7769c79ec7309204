"""Which archive an image is made of, what of it is told, and the name that the image gets."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from image.errors import ImageError
from image.subject import Subject, choose


def write(store: Path, file: str, config: str = "handler: {model: {id: org/model, revision: abc}}") -> None:
    model = {"modelName": file.removesuffix(".mar"), "modelVersion": "1.0", "configFile": "model-config.yaml"}
    with zipfile.ZipFile(store / file, "w") as archive:
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps({"model": model}))
        archive.writestr("model-config.yaml", config)


def test_the_only_archive_and_what_it_says(tmp_path: Path) -> None:
    write(tmp_path, "minilm.mar")
    expected = Subject("minilm.mar", "minilm", "1.0", "org/model", "abc")
    assert choose(tmp_path, None) == choose(tmp_path, "minilm") == choose(tmp_path, "minilm.mar") == expected
    assert choose(tmp_path, str(tmp_path / "minilm.mar")) == expected


def test_a_directory_s_model_has_no_revision(tmp_path: Path) -> None:
    write(tmp_path, "m.mar", "handler: {model: {id: minilm, revision: null}}")
    assert choose(tmp_path, "m").model_revision == ""


def test_which_one_is_meant_must_be_clear(tmp_path: Path) -> None:
    with pytest.raises(ImageError) as caught:
        choose(tmp_path, None)
    assert str(caught.value) == f"{tmp_path} holds no .mar: pack a model first"
    write(tmp_path, "a.mar")
    write(tmp_path, "b.mar")
    with pytest.raises(ImageError) as caught:
        choose(tmp_path, None)
    assert str(caught.value) == f"{tmp_path} holds several (a.mar, b.mar): name the one that is meant"
    with pytest.raises(ImageError) as caught:
        choose(tmp_path, "c")
    assert str(caught.value) == f"{tmp_path} holds no c.mar (it holds a.mar, b.mar): pack it first"


@pytest.mark.parametrize("config", ["", "handler: 1", "{", "handler: {model: {revision: abc}}"])
def test_what_is_no_archive_of_ours(tmp_path: Path, config: str) -> None:
    write(tmp_path, "m.mar", config)
    with pytest.raises(ImageError, match=r"m\.mar is no archive of marvec \(.*\): pack it again"):
        choose(tmp_path, "m")


def test_what_is_no_archive_at_all(tmp_path: Path) -> None:
    (tmp_path / "m.mar").write_text("no zip")
    with pytest.raises(ImageError, match=r"m\.mar is no archive of marvec \(File is not a zip file\): pack it again"):
        choose(tmp_path, "m")


@pytest.mark.parametrize(
    ("name", "version", "tag"),
    [
        ("minilm", "1.0", "minilm:1.0"),
        ("Multilingual-E5_large.v2", "2024-05-01", "multilingual-e5-large-v2:2024-05-01"),
        ("a..b--", "1.0+cpu", "a-b:1.0-cpu"),
        ("E5", ".é", "e5:latest"),
    ],
)
def test_the_image_s_name_is_one_that_engines_take(name: str, version: str, tag: str) -> None:
    assert Subject("x.mar", name, version, "id", "").tag == tag
