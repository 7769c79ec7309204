"""The schema files of classifiers say what the handler does: a validator's verdicts beside those of the parser.

They are of every classifier, so what depends on the model is unsaid: how many labels it has, whether it takes pairs,
and that a regression has no labels to choose from.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
import torch

from marvec import classification_parameters, classification_request
from marvec.errors import RequestError
from marvec.settings import ClassificationModel, ClassificationSettings
from marvec.tokens import Tokens
from tests.cloud import schema_verdicts
from tests.cloud.schema_verdicts import NO_UTF_8, OUT_OF_RANGE, Verdicts

LABELS = ("Negative", "Neutral", "Positive")
MODEL = ClassificationModel("tiny", None, 64, LABELS, "single_label_classification")
SETTINGS = ClassificationSettings(MODEL)
NO_PAIRS = ClassificationSettings(replace(MODEL, pairs=False))
STARS = ClassificationSettings(replace(MODEL, problem_type="regression", labels=("stars",)))
SEVERAL_STARS = ClassificationSettings(replace(MODEL, problem_type="regression"))
NAMES = classification_parameters.NAMES
# Over the three labels of this model.
UNSAID_OF_PARAMETERS = {json.dumps({"topK": count}) for count in (4, 384, 385, 256.0, 1e300)} | {
    json.dumps({"topK": 4, "scores": None})
}
# What a regression takes.
OF_A_REGRESSION: tuple[dict[str, object], ...] = (
    {},
    {"autoTruncate": False},
    {"scores": "all"},
    {"output": "score"},
    {name: None for name in NAMES},
)


def parameter_sets() -> Iterator[object]:
    """Yield what may be `parameters` and what may not."""
    yield from schema_verdicts.single_parameters(NAMES)
    choices: tuple[object, ...] = (None, "best", "all", "some", 5)
    for count, scores in itertools.product((None, 0, 1, 2.0, 4, "2"), choices):
        yield {"topK": count, "scores": scores}
    for output, threshold, count in itertools.product(("score", "label", None), (None, 0, 1, 0.5), (None, 1, 3)):
        yield {"topK": count, "output": output, "threshold": threshold, "autoTruncate": False}
    yield {"scores": "all", "output": "label", "threshold": 0.25, "autoTruncate": True, "topK": None}


def answers() -> Iterator[object]:
    """Yield the predictions that the handler really writes, for all ways to ask for them."""
    scores = torch.tensor([[0.25, 0.75, 3.0e-39], [1.0, 0.0, 0.0]])
    tokens = [Tokens([1, 2], 2), Tokens([1, 2, 3], 5)]
    ways: tuple[dict[str, object], ...] = ({}, {"topK": 1}, {"topK": 2}, {"scores": "all"}, {"threshold": 0.9})
    for way, output in itertools.product(ways, ("score", "label")):
        body = {"instances": ["a", {"content": "a"}], "parameters": {**way, "output": output}}
        asked = classification_request.parse(body, SETTINGS, {})
        yield from json.loads(asked.serialize(tokens, scores))["predictions"]
    for settings, numbers in ((STARS, scores[:, :1] * 5), (SEVERAL_STARS, scores - 3)):
        asked = classification_request.parse({"instances": ["a", "b"]}, settings, {})
        yield from json.loads(asked.serialize(tokens, numbers))["predictions"]


GOOD = {"label": "Positive", "score": 0.5}
NO_PREDICTIONS: tuple[object, ...] = (
    *("", None, True, {}, [[]], [None], [""], [0.5], ["Positive", 0.5], ["Positive", GOOD], [GOOD, "Positive"]),
    *([[0.5, 0.5]], [True, False], {"label": "Positive"}, {"score": 0.5}, {"error": "no"}, [{"label": "Positive"}]),
    *({**GOOD, "label": ""}, {**GOOD, "label": 1}, {**GOOD, "label": None}),
    *({**GOOD, "score": 1.5}, {**GOOD, "score": -0.1}, {**GOOD, "score": "0.5"}, {**GOOD, "score": None}),
    *({**GOOD, "more": 1}, [{**GOOD, "more": 1}], [{**GOOD, "score": 2}], [GOOD, None]),
    {"embeddings": {"values": [0.1], "statistics": {"token_count": 2, "truncated": False}}},
)


@pytest.fixture(scope="module")
def verdicts() -> Mapping[str, Verdicts]:
    return schema_verdicts.ask(
        "classification",
        {
            "instance.yaml": schema_verdicts.instances(),
            "parameters.yaml": parameter_sets(),
            "prediction.yaml": (*answers(), *NO_PREDICTIONS),
        },
    )


def parses(body: object, settings: ClassificationSettings = SETTINGS) -> bool:
    """Return whether the handler takes a request."""
    try:
        classification_request.parse(json.dumps(body), settings, {})
    except RequestError:
        return False
    return True


def of_instance(settings: ClassificationSettings = SETTINGS) -> Callable[[object], bool]:
    """Return what tells whether the handler takes a request of one instance."""
    return lambda value: parses({"instances": [value]}, settings)


def of_parameters(settings: ClassificationSettings = SETTINGS) -> Callable[[object], bool]:
    """Return what tells whether the handler takes a request with parameters."""
    return lambda value: parses({"instances": ["a"], "parameters": value}, settings)


def test_instances(verdicts: Mapping[str, Verdicts]) -> None:
    asked = verdicts["instance.yaml"]
    assert len(asked.told) > 900
    assert 100 < sum(asked.told) < len(asked.told) - 500
    unsaid = {**dict.fromkeys(NO_UTF_8, (True, False)), OUT_OF_RANGE: (False, True)}
    assert asked.unlike(of_instance()) == unsaid
    # A model that takes no pairs refuses these, and takes all else.
    others = {value: told for value, told in asked.unlike(of_instance(NO_PAIRS)).items() if value not in unsaid}
    assert '{"text": "a", "text_pair": "b"}' in others
    assert {tuple(json.loads(value)) for value in others} == {("text", "text_pair")}
    assert set(others.values()) == {(True, False)}


def test_parameters(verdicts: Mapping[str, Verdicts]) -> None:
    asked = verdicts["parameters.yaml"]
    assert len(asked.told) > 350
    assert 60 < sum(asked.told) < len(asked.told) - 200
    assert asked.unlike(of_parameters()) == dict.fromkeys(UNSAID_OF_PARAMETERS, (True, False))


@pytest.mark.parametrize("settings", [STARS, SEVERAL_STARS])
def test_parameters_of_a_regression(settings: ClassificationSettings, verdicts: Mapping[str, Verdicts]) -> None:
    """It takes less than the schema, never more; and all that the schema's description says."""
    asked = verdicts["parameters.yaml"]
    assert set(asked.unlike(of_parameters(settings)).values()) == {(True, False)}
    takes = of_parameters(settings)
    taken = [value for value in asked.values if value not in (None, {}) and takes(value)]
    assert all(isinstance(value, dict) for value in taken)
    chosen = {(name, value) for one in taken if isinstance(one, dict) for name, value in one.items()}
    assert {one for one in chosen if one[1] is not None} == {
        *(("scores", "all"), ("output", "score"), ("autoTruncate", True), ("autoTruncate", False))
    }
    assert all(takes(value) for value in OF_A_REGRESSION)


def test_predictions(verdicts: Mapping[str, Verdicts]) -> None:
    written = list(answers())
    assert {type(one) for one in written} == {dict, str, list, float}
    assert [] in written
    assert verdicts["prediction.yaml"].told == [True] * len(written) + [False] * len(NO_PREDICTIONS)


def test_each_form_has_an_example_that_is_one(verdicts: Mapping[str, Verdicts]) -> None:
    for name, asked in verdicts.items():
        assert asked.told_of_examples == [True] * len(asked.examples), name
    assert all(map(of_instance(), verdicts["instance.yaml"].examples))
    assert all(map(of_parameters(), verdicts["parameters.yaml"].examples))
