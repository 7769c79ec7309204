"""The schema files of embedding models say what the handler does: a validator's verdicts beside those of the parser.

Not among the single instances and parameters, since it lies between them: token ids refuse a request whose promptName
or taskType chooses a prompt.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator, Mapping

import numpy as np
import pytest
import torch

from marvec import embedding_parameters, embedding_request
from marvec.errors import RequestError
from marvec.settings import EmbeddingModel, EmbeddingSettings
from marvec.tokens import Tokens
from tests.cloud import schema_verdicts
from tests.cloud.schema_verdicts import NO_UTF_8, OUT_OF_RANGE, VALUES, Verdicts
from tests.contract import test_refusals
from tests.contract.archives import PROMPTS

SETTINGS = EmbeddingSettings(EmbeddingModel("tiny", None, 64, 384, ("mean",), normalize=True, prompts=PROMPTS))
NAMES = embedding_parameters.NAMES
# What depends on the model.
UNSAID_OF_PARAMETERS = {
    *(json.dumps({"outputDimensionality": size}) for size in (385, 1e300, 99999)),
    *(json.dumps({"promptName": value}) for value in VALUES if isinstance(value, str) and value not in ("", *PROMPTS)),
    json.dumps({"promptName": "CLUSTERING", "taskType": None}),
}


def parameter_sets() -> Iterator[object]:
    """Yield what may be `parameters` and what may not."""
    yield from schema_verdicts.single_parameters(NAMES)
    (mark,) = test_refusals.test_parameters.pytestmark  # type: ignore[attr-defined]
    for name, value, _ in mark.args[1]:
        yield {name: value}
    choices: tuple[object, ...] = (None, "", "query", "CLUSTERING", 5)
    for prompt, task in itertools.product(choices, choices):
        yield {"promptName": prompt, "taskType": task}
    good = (8, True, False, "query", None, "base64")
    yield dict(zip(NAMES, good, strict=True))


def answers() -> Iterator[object]:
    """Yield the predictions that the handler really writes."""
    vectors = torch.tensor([[0.25, -1e-9, 1.0], [0.5, 0.0, 3.0e-39]])
    for encoding in ("float", "base64"):
        body = {"instances": ["a", {"content": "a"}], "parameters": {"encodingFormat": encoding}}
        asked = embedding_request.parse(body, SETTINGS, {})
        tokens = [Tokens([1, 2], 2), Tokens([1, 2, 3], 5)]
        yield from json.loads(asked.serialize(tokens, vectors))["predictions"]


STATISTICS = {"token_count": 2, "truncated": False}
NO_PREDICTIONS: tuple[object, ...] = (
    *([], [None], ["0.1"], [[0.1]], "", "AAA=", "AAAAAAA", 0.1, None, {}, {"error": "no"}, {"embeddings": [0.1]}),
    {"label": "Positive", "score": 0.5},
    {"embeddings": {"values": [0.1]}},
    {"embeddings": {"values": [], "statistics": STATISTICS}},
    {"embeddings": {"values": [0.1], "statistics": {"token_count": 2}}},
    {"embeddings": {"values": [0.1], "statistics": {"token_count": 2.5, "truncated": False}}},
    {"embeddings": {"values": [0.1], "statistics": {"token_count": 0, "truncated": False}}},
    {"embeddings": {"values": [0.1], "statistics": {"token_count": 2, "truncated": None}}},
    {"embeddings": {"values": [0.1], "statistics": STATISTICS}, "more": 1},
)


@pytest.fixture(scope="module")
def verdicts() -> Mapping[str, Verdicts]:
    return schema_verdicts.ask(
        "embedding",
        {
            "instance.yaml": schema_verdicts.instances(),
            "parameters.yaml": parameter_sets(),
            "prediction.yaml": (*answers(), *NO_PREDICTIONS),
        },
    )


def parses(body: object) -> bool:
    """Return whether the handler takes a request."""
    try:
        embedding_request.parse(json.dumps(body), SETTINGS, {})
    except RequestError:
        return False
    return True


def parses_instance(value: object) -> bool:
    """Return whether the handler takes a request of one instance."""
    return parses({"instances": [value]})


def parses_parameters(value: object) -> bool:
    """Return whether the handler takes a request with parameters."""
    return parses({"instances": ["a"], "parameters": value})


def test_instances(verdicts: Mapping[str, Verdicts]) -> None:
    asked = verdicts["instance.yaml"]
    assert len(asked.told) > 900
    assert 100 < sum(asked.told) < len(asked.told) - 500
    assert asked.unlike(parses_instance) == {
        **dict.fromkeys(NO_UTF_8, (True, False)),
        OUT_OF_RANGE: (False, True),
    }


def test_parameters(verdicts: Mapping[str, Verdicts]) -> None:
    asked = verdicts["parameters.yaml"]
    assert len(asked.told) > 400
    assert 40 < sum(asked.told) < len(asked.told) - 200
    assert asked.unlike(parses_parameters) == dict.fromkeys(UNSAID_OF_PARAMETERS, (True, False))


def test_predictions(verdicts: Mapping[str, Verdicts]) -> None:
    assert verdicts["prediction.yaml"].told == [True] * 4 + [False] * len(NO_PREDICTIONS)


def test_each_form_has_an_example_that_is_one(verdicts: Mapping[str, Verdicts]) -> None:
    for name, asked in verdicts.items():
        assert asked.told_of_examples == [True] * len(asked.examples), name
    assert all(parses_instance(instance) for instance in verdicts["instance.yaml"].examples)
    assert all(parses_parameters(value) for value in verdicts["parameters.yaml"].examples)
    vector, in_base64, _ = verdicts["prediction.yaml"].examples
    assert np.frombuffer(base64.b64decode(str(in_base64)), "<f4").tolist() == np.array(vector, np.float32).tolist()
