"""Scores as the bytes of an answer, and what an answer can take at most."""

from __future__ import annotations

import json

import pytest
import torch

from marvec.classification_request import ClassificationRequest, parse
from marvec.scores import scores
from marvec.settings import ClassificationModel, ClassificationSettings

LABELS = ("Negative", "Größe 😀", "Positive")
SINGLE = ClassificationModel("m", None, 8, LABELS, "single_label_classification")
LOGITS = torch.tensor([[0.0, 1.0, 3.0], [2.0, 2.0, -2.0]])


def ask(parameters: object = None, model: ClassificationModel = SINGLE) -> ClassificationRequest:
    body = {"instances": ["a", "b"], "parameters": parameters}
    return parse(json.dumps(body), ClassificationSettings(model), {})


def answer(parameters: object = None, model: ClassificationModel = SINGLE, logits: torch.Tensor = LOGITS) -> str:
    request = ask(parameters, model)
    return request.serialize([], request.finish(logits)).decode()


def test_the_best_label_with_its_score() -> None:
    logits = torch.tensor([[0.0, 0.0, 200.0], [0.0, -200.0, 0.0]])
    assert answer(logits=logits) == (
        '{"predictions":[{"label":"Positive","score":1.0},{"label":"Negative","score":0.5}]}'
    )


def test_the_label_alone() -> None:
    assert answer({"output": "label"}) == '{"predictions":["Positive","Negative"]}'


def test_equal_scores_keep_the_order_of_the_labels() -> None:
    listed = json.loads(answer({"topK": 2, "output": "label"}))["predictions"]
    assert listed == [["Positive", "Größe 😀"], ["Negative", "Größe 😀"]]


def test_all_scores_are_a_softmax_the_best_first() -> None:
    (first, _) = json.loads(answer({"scores": "all"}))["predictions"]
    assert [item["label"] for item in first] == ["Positive", "Größe 😀", "Negative"]
    assert sum(item["score"] for item in first) == pytest.approx(1)


def test_a_threshold_may_leave_nothing() -> None:
    assert answer({"threshold": 0.6, "output": "label"}) == '{"predictions":[["Positive"],[]]}'
    assert answer({"threshold": 0.4, "topK": 1, "output": "label"}) == '{"predictions":[["Positive"],["Negative"]]}'


def test_each_label_of_several_has_a_sigmoid_of_its_own() -> None:
    model = ClassificationModel("m", None, 8, LABELS, "multi_label_classification")
    predictions = json.loads(answer({"threshold": 0.5}, model))["predictions"]
    assert [[item["label"] for item in one] for one in predictions] == [
        ["Positive", "Größe 😀", "Negative"],
        ["Negative", "Größe 😀"],
    ]
    assert predictions[0][1]["score"] == pytest.approx(0.7310586)


def test_a_regression_is_a_number_or_a_list() -> None:
    one = ClassificationModel("m", None, 8, ("LABEL_0",), "regression")
    assert answer(None, one, torch.tensor([[0.1], [-7.25]])) == '{"predictions":[0.1,-7.25]}'
    three = ClassificationModel("m", None, 8, LABELS, "regression")
    assert answer(None, three) == '{"predictions":[[0.0,1.0,3.0],[2.0,2.0,-2.0]]}'


def test_scores_refuse_an_unknown_problem() -> None:
    with pytest.raises(ValueError, match=r"^unknown problem type 'ranking'$"):
        scores(LOGITS, "ranking")


@pytest.mark.parametrize(
    ("parameters", "problem_type"),
    [
        (None, "single_label_classification"),
        ({"topK": 2}, "single_label_classification"),
        ({"scores": "all"}, "multi_label_classification"),
        ({"threshold": 0.0, "output": "label"}, "single_label_classification"),
        (None, "regression"),
    ],
)
def test_an_answer_is_never_larger_than_was_said(parameters: object, problem_type: str) -> None:
    model = ClassificationModel("m", None, 8, ("\x01" * 9, '"quoted"', "日本"), problem_type)
    widest = torch.tensor([[-1.2345678e-38, -1.2345678e-38, -1.2345678e-38]] * 2)
    request = ask(parameters, model)
    assert len(request.serialize([], widest)) - len('{"predictions":[]}') <= request.answer_bytes
