"""Scores beside those that they should be: in the self-test, in what pack measures, and in a worker's answer."""

from __future__ import annotations

import json
import math

import pytest
import torch

from archiver import drift
from archiver.errors import PackError
from archiver.probe import Probe
from marvec import agreement
from marvec.errors import SelfTestError
from marvec.settings import ClassificationModel, ClassificationSettings

LABELS = ("bad", "good")
SETTINGS = ClassificationSettings(ClassificationModel("m", None, 8, LABELS, "single_label_classification"))
REGRESSION = ClassificationSettings(ClassificationModel("m", None, 8, ("LABEL_0",), "regression"))
PROBE = Probe("a", [0.25, 0.75])


def test_the_largest_difference_of_a_score() -> None:
    recorded, given = torch.tensor([[0.25, 0.75], [0.5, 0.5]]), torch.tensor([[0.25, 0.75], [0.5005, 0.4995]])
    assert agreement.require(SETTINGS, recorded, given, "float32") == {
        "golden_difference": pytest.approx(5e-4, abs=1e-6)
    }


def test_a_regressions_number_is_compared_in_parts_of_itself() -> None:
    recorded, given = torch.tensor([[2000.0], [0.5]]), torch.tensor([[2001.0], [0.5]])
    assert agreement.require(REGRESSION, recorded, given, "float32") == {
        "golden_difference": pytest.approx(5e-4, abs=1e-6)
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[0.0, 1.0]], "largest difference to the golden scores is 0.250000, allowed is 0.001"),
        ([[math.nan, 0.75]], "a golden text's answer has a number that is not finite"),
        ([[0.25, 0.5, 0.25]], "answers have shape [1, 3], the recorded ones [1, 2]"),
    ],
)
def test_answers_that_are_not_those(given: list[list[float]], message: str) -> None:
    with pytest.raises(SelfTestError) as caught:
        agreement.require(SETTINGS, torch.tensor([[0.25, 0.75]]), torch.tensor(given), "float32")
    assert str(caught.value) == message


def test_drift_of_scores() -> None:
    reference = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.5, 0.5]])
    scores = torch.tensor([[0.8, 0.2], [0.4, 0.6], [0.2, 0.8], [0.5, 0.5]])
    found = drift.of_scores(reference, scores, "single_label_classification", "int8")
    assert (found.inputs, found.dtype, found.same_label) == (4, "int8", 0.75)
    assert found.largest_difference == pytest.approx(0.2)
    assert found.mean_difference == pytest.approx(0.075)
    assert found.told == "same label 75.0%, mean difference of a score 0.0750"


def test_what_counts_as_the_same_answer() -> None:
    reference, scores = torch.tensor([[0.9, 0.6], [0.9, 0.2]]), torch.tensor([[0.8, 0.4], [0.7, 0.3]])
    assert drift.of_scores(reference, scores, "multi_label_classification").same_label == 0.5
    assert drift.of_scores(reference, scores, "single_label_classification").same_label == 1.0
    assert drift.of_scores(reference[:, :1], -scores[:, :1], "multi_label_classification").same_label == 0.0
    numbers = drift.of_scores(torch.tensor([[10.0], [0.5]]), torch.tensor([[9.0], [0.2]]), "regression")
    assert numbers.same_label == 1.0
    assert numbers.mean_difference == pytest.approx(0.2)


def test_labels_that_outputs_share() -> None:
    model = ClassificationModel("m", None, 8, ("a", "a", "b"), "single_label_classification")
    shared = ClassificationSettings(model)
    Probe("x", [0.1, 0.7, 0.2]).require('{"predictions":[{"label":"a","score":0.7}]}', shared, "float32")


@pytest.mark.parametrize("prediction", [{"label": "good", "score": 0.7501}, "good"])
def test_a_workers_answer(prediction: object) -> None:
    PROBE.require(json.dumps({"predictions": [prediction]}), SETTINGS, "float32")


def test_a_regressions_answer() -> None:
    Probe("a", [-1.5]).require('{"predictions":[-1.5001]}', REGRESSION, "float32")
    Probe("a", [-1.5, 2.0]).require('{"predictions":[[-1.5,2.0]]}', REGRESSION, "float32")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            '{"predictions":[{"label":"good","score":0.5}]}',
            "a worker gives another answer than the packed model: largest difference to the golden scores is 0.250000, "
            "allowed is 0.001",
        ),
        (
            '{"predictions":["bad"]}',
            "a worker gives another answer than the packed model: largest difference to the golden scores is 0.500000, "
            "allowed is 0.001",
        ),
        ('{"predictions":["ugly"]}', 'the answer holds no prediction: {"predictions":["ugly"]}'),
        ('{"predictions":[]}', 'the answer holds no prediction: {"predictions":[]}'),
        ("[]", "the answer holds no prediction: []"),
    ],
)
def test_a_workers_answer_that_is_another(body: str, message: str) -> None:
    with pytest.raises(PackError) as caught:
        PROBE.require(body, SETTINGS, "float32")
    assert str(caught.value) == message
