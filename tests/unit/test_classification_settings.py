"""Settings of a classifier: what they may be, and that each handler takes those of its own task."""

from __future__ import annotations

from typing import Any

import pytest

from classification_handler import ClassificationHandler
from embedding_handler import EmbeddingHandler
from marvec.errors import SettingsError
from marvec.settings import ClassificationModel, ClassificationSettings, EngineSettings, read_settings
from marvec_handler import MarvecHandler

MODEL: dict[str, Any] = {
    "id": "m",
    "revision": None,
    "max_length": 8,
    "labels": ["a", "b"],
    "problem_type": "single_label_classification",
}


def test_the_defaults() -> None:
    settings = read_settings({"task": "classification", "model": MODEL})
    assert settings == ClassificationSettings(
        ClassificationModel("m", None, 8, ("a", "b"), "single_label_classification", "score", True, False)
    )
    assert not settings.token_types


def test_they_come_back_from_a_mapping() -> None:
    model = ClassificationModel("m", "c0ffee", 8, ("a",), "multi_label_classification", "label", False, True)
    settings = ClassificationSettings(model, EngineSettings("openvino", "int8"))
    assert read_settings(settings.to_mapping()) == settings
    assert settings.token_types


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": []}, "model.labels: expected one for each output of the model, got none"),
        ({"labels": "ab"}, "model.labels: expected a list of strings, got 'ab'"),
        ({"labels": [1]}, "model.labels: expected a list of strings, got [1]"),
        (
            {"problem_type": "ranking"},
            "model.problem_type: expected one of single_label_classification, multi_label_classification, regression, "
            "got 'ranking'",
        ),
        (
            {"labels": ["a"]},
            "model.problem_type: single_label_classification takes at least two outputs, the model has one, whose "
            "score would always be 1",
        ),
        ({"output": "logits"}, "model.output: expected one of score, label, got 'logits'"),
        (
            {"problem_type": "regression", "output": "label"},
            "model.output: a regression's answer is a number, which has no label",
        ),
        ({"pairs": 1}, "model.pairs: expected true or false, got 1"),
        ({"token_types": "no"}, "model.token_types: expected true or false, got 'no'"),
        ({"max_length": 0}, "model.max_length: expected a whole number of at least 1, got 0"),
        (
            {"pooling": ["mean"]},
            "model.pooling: unknown key; known keys: id, revision, max_length, labels, problem_type, output, pairs, "
            "token_types",
        ),
    ],
)
def test_what_they_may_not_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"task": "classification", "model": {**MODEL, **change}})
    assert str(caught.value) == message


def test_an_unknown_task() -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"task": "generation", "model": MODEL})
    assert str(caught.value) == "handler.task: expected one of embedding, classification, got 'generation'"


def test_a_handler_takes_its_own_task_alone() -> None:
    section = {"task": "classification", "model": MODEL}
    assert ClassificationHandler()._settings(section) == read_settings(section)
    assert MarvecHandler()._settings(section) == read_settings(section)
    with pytest.raises(SettingsError) as caught:
        EmbeddingHandler()._settings(section)
    assert str(caught.value) == "handler.task: 'classification' is not for EmbeddingHandler; pack the model again"
