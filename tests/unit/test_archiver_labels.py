"""The label of each output: index_to_name.json before id2label, and no index without its label."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archiver import labels, model_dir
from archiver.errors import PackError
from archiver.labels import FILE
from marvec.errors import ModelDirError

CONFIG = {"model_type": "bert", "hidden_size": 8, "vocab_size": 9, "architectures": ["BertForSequenceClassification"]}


def read(
    folder: Path, id2label: object = None, beside: object = None, given: object = None, count: int = 2
) -> tuple[tuple[str, ...], str]:
    """Return the labels, and where they are said to come from."""
    config = CONFIG if id2label is None else {**CONFIG, "id2label": id2label}
    (folder / "config.json").write_text(json.dumps(config))
    if beside is not None:
        (folder / FILE).write_text(json.dumps(beside))
    file = folder / "own.json"
    if given is not None:
        file.write_text(json.dumps(given))
    notes: list[str] = []
    found = labels.read(model_dir.read(folder), file if given is not None else None, count, notes)
    return found, notes[0]


BOTH = {"0": "Negative", "1": "Positive"}


def test_from_config_json(tmp_path: Path) -> None:
    assert read(tmp_path, BOTH) == (("Negative", "Positive"), "labels Negative, Positive, from config.json")


def test_as_transformers_names_them(tmp_path: Path) -> None:
    found = read(tmp_path, count=3)
    assert found == (("LABEL_0", "LABEL_1", "LABEL_2"), "labels LABEL_0, LABEL_1, LABEL_2, from transformers' defaults")


def test_from_the_directory_before_config_json(tmp_path: Path) -> None:
    found = read(tmp_path, BOTH, {"1": "gut", "0": "schlecht"})
    assert found == (("schlecht", "gut"), f"labels schlecht, gut, from the directory's {FILE}")


def test_from_the_user_before_all(tmp_path: Path) -> None:
    found = read(tmp_path, BOTH, {"0": "a", "1": "b"}, {"0": "no", "1": "yes"})
    assert found == (("no", "yes"), "labels no, yes, from --labels")


def test_labels_that_are_shared_are_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / FILE).write_text(json.dumps({"0": "a", "1": "a", "2": "b"}))
    notes: list[str] = []
    assert labels.read(model_dir.read(tmp_path), None, 3, notes) == ("a", "a", "b")
    assert notes[1] == "several outputs share a label: a; their scores are not added up"


@pytest.mark.parametrize(
    ("mapping", "count", "message"),
    [
        ({"0": "a"}, 2, "no label for 1; expected are the indexes 0 to 1, each with its label"),
        ({"0": "a", "2": "c"}, 4, "no label for 1, 3; expected are the indexes 0 to 3, each with its label"),
        ({}, 9, "no label for 0, 1, 2, 3, 4 and 4 more; expected are the indexes 0 to 8, each with its label"),
        ({**BOTH, "2": "c"}, 2, "'2' is no output of the model; expected are the indexes 0 to 1, each with its label"),
        ({"a": "0"}, 1, "'a' is no output of the model; expected are the indexes 0 to 0, each with its label"),
        ({"-1": "b"}, 1, "'-1' is no output of the model; expected are the indexes 0 to 0, each with its label"),
        ({"0": "", "1": "b"}, 2, "the label of 0 should be a non-empty string, is ''"),
        ({"0": ["n01440764", "tench"]}, 1, "the label of 0 should be a non-empty string, is ['n01440764', 'tench']"),
        ({"0": "a", "00": "b"}, 1, "the index 0 stands twice"),
        (
            {"0": "a", "1" * 5000: "b"},
            1,
            "'11111111111111111111' is no output of the model; expected are the indexes 0 to 0, each with its label",
        ),
        (
            {"0": "a\x85b"},
            1,
            "the label of 0, 'a\\x85b', has a control character or half of a surrogate pair",
        ),
        ({"0": "\ud800"}, 1, "the label of 0, '\\ud800', has a control character or half of a surrogate pair"),
    ],
)
def test_a_mapping_must_cover_every_index(mapping: dict[str, object], count: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(PackError) as caught:
        read(tmp_path, beside=mapping, count=count)
    assert str(caught.value) == f"{tmp_path / FILE}: {message}"
    with pytest.raises(PackError) as caught:
        read(tmp_path, beside=dict(enumerate("abcdefghi"[:count])), given=mapping, count=count)
    assert str(caught.value) == f"{tmp_path / 'own.json'}: {message}"


def test_gaps_in_config_json(tmp_path: Path) -> None:
    """Transformers counts two outputs there, and would load two of the three."""
    with pytest.raises(PackError) as caught:
        read(tmp_path, {"0": "a", "2": "c"}, BOTH, count=2)
    assert str(caught.value) == (
        f"{tmp_path / 'config.json'}: id2label: no label for 1; expected are the indexes 0 to 2, each with its label"
    )


def test_id2label_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(PackError) as caught:
        read(tmp_path, ["a", "b"])
    assert str(caught.value) == f"{tmp_path / 'config.json'}: id2label is not an object of index -> label"


def test_files_that_are_no_objects(tmp_path: Path) -> None:
    with pytest.raises(ModelDirError) as caught:
        read(tmp_path, beside=["a", "b"])
    assert str(caught.value) == f"{tmp_path / FILE}: expected a JSON object"
    (tmp_path / FILE).write_text("{")
    with pytest.raises(ModelDirError, match="cannot be read as JSON"):
        labels.read(model_dir.read(tmp_path), None, 2, [])
