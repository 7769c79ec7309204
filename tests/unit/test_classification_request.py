"""Requests for labels: instances, pairs, parameters, and their refusals."""

from __future__ import annotations

import json

import pytest

from marvec.classification_parameters import ClassificationParameters
from marvec.classification_request import ClassificationRequest, parse
from marvec.errors import NotFoundError, RequestError, TooLargeError
from marvec.instances import Input
from marvec.settings import ClassificationModel, ClassificationSettings, LimitSettings

LABELS = ("Negative", "Neutral", "Positive")
MODEL = ClassificationModel("m", None, 8, LABELS, "single_label_classification")
SETTINGS = ClassificationSettings(MODEL, limits=LimitSettings(max_instances=3))
KNOWN = "topK, scores, threshold, output, autoTruncate"


def ask(body: object, model: ClassificationModel = MODEL, path: str = "", **query: str) -> ClassificationRequest:
    return parse(json.dumps(body), ClassificationSettings(model, limits=SETTINGS.limits), query, path)


@pytest.mark.parametrize(
    ("instance", "text"),
    [
        ("a", "a"),
        (["a"], "a"),
        ({"text": "a"}, "a"),
        ({"inputs": "a"}, "a"),
        ({"data": "a"}, "a"),
        ({"b64": "YQ=="}, "a"),
        ({"data": {"b64": "YQ=="}}, "a"),
    ],
)
def test_every_form_of_a_text(instance: object, text: str) -> None:
    assert ask({"instances": [instance]}).inputs == [Input("instances[0]", text)]


def test_googles_shape_has_no_prompt_and_a_title_on_its_own_line() -> None:
    instance = {"content": "a", "task_type": "CLASSIFICATION", "title": "t"}
    assert ask({"instances": [instance]}).inputs == [Input("instances[0]", "t\na", detailed=True)]


def test_token_ids() -> None:
    assert ask({"instances": [{"input_ids": [2.0, 5, 3]}]}).inputs == [Input("instances[0].input_ids", "", [2, 5, 3])]


def test_pairs() -> None:
    asked = ask({"instances": [{"text": "a", "text_pair": "b"}, {"text": "", "text_pair": ""}]})
    assert asked.inputs == [Input("instances[0]", "a", pair="b"), Input("instances[1]", "", pair="")]


@pytest.mark.parametrize(
    ("instance", "message"),
    [
        ({"text": "a", "text_pair": 3}, "instances[0].text_pair: expected a string, got a number"),
        ({"text": "a", "text_pair": None}, "instances[0].text_pair: expected a string, got null"),
        ({"text": 1, "text_pair": "b"}, "instances[0].text: expected a string, got a number"),
        ({"inputs": "a", "text_pair": "b"}, "instances[0].text_pair: goes with text, not with inputs"),
        ({"content": "a", "text_pair": "b"}, "instances[0].text_pair: goes with text, not with content"),
        ({"text": "a", "title": "b"}, "instances[0].title: goes with content, not with text"),
        (
            {"text_pair": "b"},
            "instances[0]: expected exactly one of text, inputs, data, b64, input_ids, content, got none",
        ),
        (
            {"content": "a", "task_type": "SENTIMENT"},
            "instances[0].task_type: unknown task type; known: RETRIEVAL_QUERY, RETRIEVAL_DOCUMENT, "
            "QUESTION_ANSWERING, FACT_VERIFICATION, CODE_RETRIEVAL_QUERY, SEMANTIC_SIMILARITY, CLASSIFICATION, "
            "CLUSTERING",
        ),
        (["a", "b"], "instances[0]: expected a string or a list of one string, got another list"),
        (1, "instances[0]: expected a string, got a number"),
        ({"b64": "é"}, "instances[0].b64: not valid base64"),
    ],
)
def test_refused_instances(instance: object, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        ask({"instances": [instance]})
    assert (str(caught.value), caught.value.status) == (message, 400)


def test_a_model_without_pairs_does_not_know_the_key() -> None:
    model = ClassificationModel("m", None, 8, LABELS, "single_label_classification", pairs=False)
    with pytest.raises(RequestError) as caught:
        ask({"instances": [{"text": "a", "text_pair": "b"}]}, model)
    assert str(caught.value) == (
        "instances[0]: unknown key 'text_pair'; known keys: text, inputs, data, b64, input_ids, content, task_type, "
        "title"
    )


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (None, ClassificationParameters(1, False, None, "score", True)),
        ({}, ClassificationParameters(1, False, None, "score", True)),
        ({"topK": 2.0}, ClassificationParameters(2, True, None, "score", True)),
        ({"topK": 1}, ClassificationParameters(1, True, None, "score", True)),
        ({"scores": "all"}, ClassificationParameters(3, True, None, "score", True)),
        ({"scores": "best"}, ClassificationParameters(1, False, None, "score", True)),
        ({"threshold": 0.5}, ClassificationParameters(3, True, 0.5, "score", True)),
        ({"threshold": 0, "topK": 2}, ClassificationParameters(2, True, 0.0, "score", True)),
        ({"output": "label", "autoTruncate": False}, ClassificationParameters(1, False, None, "label", False)),
        (dict.fromkeys(KNOWN.split(", ")), ClassificationParameters(1, False, None, "score", True)),
    ],
)
def test_parameters(parameters: object, expected: ClassificationParameters) -> None:
    assert ask({"instances": ["a"], "parameters": parameters}).parameters == expected


def test_the_archive_says_what_is_answered_unless_the_request_does() -> None:
    model = ClassificationModel("m", None, 8, LABELS, "single_label_classification", output="label")
    assert ask({"instances": ["a"]}, model).parameters.output == "label"
    assert ask({"instances": ["a"], "parameters": {"output": "score"}}, model).parameters.output == "score"


def test_parameters_of_a_url() -> None:
    asked = ask({"instances": ["a"]}, topK="2", threshold="0.25", output="label", autoTruncate="false")
    assert asked.parameters == ClassificationParameters(2, True, 0.25, "label", False)
    assert ask({"instances": ["a"], "parameters": {"topK": 3}}, topK="2").parameters.most == 3
    for sent in ("0.00065824774", "2.7e-7", ".5", "1", "0."):
        assert ask({"instances": ["a"]}, threshold=sent).parameters.threshold == float(sent)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"top_k": 2}, f"parameters: unknown key 'top_k'; known keys: {KNOWN}"),
        ({"topK": 0}, "parameters.topK: allowed are 1 to 3, got 0"),
        ({"topK": 4}, "parameters.topK: allowed are 1 to 3, got 4"),
        ({"topK": 1.5}, "parameters.topK: expected a whole number, got 1.5"),
        ({"topK": "2"}, "parameters.topK: expected a whole number, got a string"),
        ({"topK": True}, "parameters.topK: expected a whole number, got a boolean"),
        ({"scores": "some"}, "parameters.scores: expected one of best, all"),
        (
            {"topK": 2, "scores": "all"},
            "parameters.topK and parameters.scores both say how many labels: send one of them",
        ),
        ({"threshold": 1.5}, "parameters.threshold: allowed are 0 to 1, got 1.5"),
        ({"threshold": "0.5"}, "parameters.threshold: expected a number, got a string"),
        ({"output": "logits"}, "parameters.output: expected one of score, label"),
        ({"autoTruncate": 1}, "parameters.autoTruncate: expected true or false, got a number"),
        ([], "parameters: expected an object, got a list"),
    ],
)
def test_refused_parameters(parameters: object, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        ask({"instances": ["a"], "parameters": parameters})
    assert (str(caught.value), caught.value.status) == (message, 400)


def test_a_threshold_without_end() -> None:
    """Python's own decoder, which reads what orjson refuses, gives whole numbers of any size."""
    with pytest.raises(RequestError) as caught:
        parse(b'{"instances": ["\\ud800"], "parameters": {"threshold": 1' + b"0" * 400 + b"}}", SETTINGS, {})
    assert (str(caught.value), caught.value.status) == ("parameters.threshold: the number is too large", 400)


@pytest.mark.parametrize("parameters", [{"topK": 1}, {"threshold": 0.5}, {"output": "label"}, {"scores": "best"}])
def test_a_regression_has_no_labels(parameters: dict[str, object]) -> None:
    model = ClassificationModel("m", None, 8, ("LABEL_0",), "regression")
    with pytest.raises(RequestError) as caught:
        ask({"instances": ["a"], "parameters": parameters}, model)
    (name,) = parameters
    assert (
        str(caught.value)
        == f"parameters.{name}: this model is a regression: its answer is a number, not a label; leave it out"
    )
    assert ask({"instances": ["a"], "parameters": {"scores": "all", "output": "score"}}, model).inputs


def test_too_many_instances() -> None:
    with pytest.raises(TooLargeError) as caught:
        ask({"instances": ["a"] * 4})
    assert str(caught.value) == "instances: 4 given, the limit is 3; send them in several requests"


def test_no_path_is_served() -> None:
    with pytest.raises(NotFoundError) as caught:
        ask({"input": "a"}, path="/v1/embeddings")
    assert str(caught.value) == "no such path; a classifier has none after its version"
