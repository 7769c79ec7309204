"""The schema files say what the handler does: each verdict of a real OpenAPI validator beside that of the parser.

What the language of schemas cannot say is listed here. Not among the single instances and parameters, since it lies
between them: token ids refuse a request whose promptName or taskType chooses a prompt.
"""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import torch
import yaml

from marvec import embedding_request
from marvec.errors import RequestError
from marvec.settings import EmbeddingModel, EmbeddingSettings
from marvec.tokens import Tokens
from tests.contract import test_forms, test_refusals
from tests.contract.archives import PROMPTS
from tests.install.other_pythons import environment_with
from vertex import schemas

VALIDATOR = ["openapi-schema-validator==0.9.0", "openapi-spec-validator==0.9.0", "PyYAML==6.0.4"]
# Reads the schemas' folder from its argument and {file: [value, …]} from stdin; answers {file: [verdict, …]}.
VERDICTS = """
import json, pathlib, sys, yaml
from openapi_schema_validator import OAS30Validator
from openapi_spec_validator import OpenAPIV30SpecValidator, validate
told = {}
for name, values in json.load(sys.stdin).items():
    schema = yaml.safe_load(pathlib.Path(sys.argv[1], name).read_text(encoding="utf-8"))
    info = {"title": "Marvec", "version": "1"}
    document = {"openapi": "3.0.2", "info": info, "paths": {}, "components": {"schemas": {"It": schema}}}
    validate(document, cls=OpenAPIV30SpecValidator)
    validator = OAS30Validator(schema)
    told[name] = [validator.is_valid(value) for value in values]
json.dump(told, sys.stdout)
"""
SETTINGS = EmbeddingSettings(EmbeddingModel("tiny", None, 64, 384, ("mean",), normalize=True, prompts=PROMPTS))
LATIN_1 = base64.b64encode("é".encode("latin-1")).decode()
TEXT_KEYS = ("text", "inputs", "data", "b64", "input_ids", "content")
GOOD = {"text": "a", "inputs": "a", "data": "a", "b64": "YQ==", "input_ids": [2], "content": "a"}
EXTRAS = ("task_type", "title")
VALUES: tuple[object, ...] = (
    *("", "a", "日本", "YQ==", "YWI=", "YWJj", "YQ=", "YQ", "Y===", "=", "é===", LATIN_1, "CLUSTERING", "clustering"),
    *(None, True, False, 0, 1, -1, 2.0, 2.5, 384, 385, 256.0, 1e300, "256", "true", "query", "float", "base64"),
    *([], [""], ["a"], ["a", "b"], [["a"]], [5], [None], [{}], [2, 3], [2.0, 1e300], [2.5], [True], [-1], ["2"]),
    *({}, {"b64": "YQ=="}, {"b64": ""}, {"b64": "a"}, {"b64": LATIN_1}, {"b64": 5}, {"b64": None}, {"text": "a"}),
    {"b64": "YQ==", "text": "a"},
)
# The text that base64 holds, and the range of ids, which the tokenizer checks once it knows the model.
UNSAID_OF_INSTANCES = {
    '{"b64": "6Q=="}': "no UTF-8",
    '{"data": {"b64": "6Q=="}}': "no UTF-8",
    '{"b64": "true"}': "no UTF-8",
    '{"input_ids": [-1]}': "out of every model's range",
}
# What depends on the model.
UNSAID_OF_PARAMETERS = {
    **{json.dumps({"outputDimensionality": size}): "over the dimension" for size in (385, 1e300, 99999)},
    **{
        json.dumps({"promptName": value}): "no prompt of this model"
        for value in VALUES
        if isinstance(value, str) and value not in ("", *PROMPTS)
    },
    json.dumps({"promptName": "CLUSTERING", "taskType": None}): "no prompt of this model",
}


def _examples(name: str) -> list[object]:
    schema = yaml.safe_load(schemas.read(name))
    of_properties = [{key: one["example"]} for key, one in schema.get("properties", {}).items()]
    return [*(form["example"] for form in schema.get("oneOf", [schema])), *of_properties]


EXAMPLES = {name: _examples(name) for name in schemas.FILES}


@cache
def verdicts() -> dict[str, list[bool]]:
    """Ask the validator for all values at once; a schema that is no OpenAPI 3.0 ends it."""
    python = environment_with(Path(sys.executable), VALIDATOR)
    folder = Path(schemas.__file__).with_name("schemas")
    values = {
        "instance.yaml": instances(),
        "parameters.yaml": parameter_sets(),
        "prediction.yaml": (*answers(), *NO_PREDICTIONS),
    }
    asked = {name: [*some, *EXAMPLES[name]] for name, some in values.items()}
    done = subprocess.run(
        [str(python), "-W", "error", "-c", VERDICTS, str(folder)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, list[bool]] = json.loads(done.stdout)
    return told


def instances() -> Iterator[object]:
    """Yield what is an instance and what is none: those of the contract's tests, and many more."""
    yield from _first_arguments(test_forms.test_forms_of_a_text)
    yield from _first_arguments(test_forms.test_googles_form)
    yield from _first_arguments(test_refusals.test_instances)
    yield from VALUES
    for key, value in itertools.product((*TEXT_KEYS, *EXTRAS, "mime_type"), VALUES):
        yield {key: value}
    for key, value in itertools.product(EXTRAS, VALUES):
        yield {"content": "a", key: value}
    for count in (2, 3):
        for keys in itertools.combinations((*TEXT_KEYS, *EXTRAS), count):
            yield {key: GOOD.get(key, "CLUSTERING") for key in keys}
    for key, good in GOOD.items():
        yield {key: good, "mime_type": "text/plain"}


def parameter_sets() -> Iterator[object]:
    """Yield what may be `parameters` and what may not."""
    yield from VALUES
    names = ("outputDimensionality", "autoTruncate", "normalize", "promptName", "taskType", "encodingFormat")
    for name, value in itertools.product((*names, "dimensions"), VALUES):
        yield {name: value}
    (mark,) = test_refusals.test_parameters.pytestmark  # type: ignore[attr-defined]
    for name, value, _ in mark.args[1]:
        yield {name: value}
    choices: tuple[object, ...] = (None, "", "query", "CLUSTERING", 5)
    for prompt, task in itertools.product(choices, choices):
        yield {"promptName": prompt, "taskType": task}
    yield dict.fromkeys(names)
    good = (8, True, False, "query", None, "base64")
    yield dict(zip(names, good, strict=True))


def _first_arguments(test: object) -> Iterator[object]:
    (mark,) = test.pytestmark  # type: ignore[attr-defined]
    yield from (arguments[0] for arguments in mark.args[1])


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
    {"embeddings": {"values": [0.1]}},
    {"embeddings": {"values": [], "statistics": STATISTICS}},
    {"embeddings": {"values": [0.1], "statistics": {"token_count": 2}}},
    {"embeddings": {"values": [0.1], "statistics": {"token_count": 2.5, "truncated": False}}},
    {"embeddings": {"values": [0.1], "statistics": {"token_count": 0, "truncated": False}}},
    {"embeddings": {"values": [0.1], "statistics": {"token_count": 2, "truncated": None}}},
    {"embeddings": {"values": [0.1], "statistics": STATISTICS}, "more": 1},
)


def without_examples(name: str) -> list[bool]:
    """Return the validator's verdicts on all but the schema's own examples."""
    return verdicts()[name][: -len(EXAMPLES[name])]


def parses(body: object) -> bool:
    """Return whether the handler takes a request."""
    try:
        embedding_request.parse(json.dumps(body), SETTINGS, {})
    except RequestError:
        return False
    return True


def unlike(values: Iterable[object], schema: list[bool], parser: Iterable[bool]) -> dict[str, tuple[bool, bool]]:
    """Return where the two verdicts differ: value to (schema's, parser's)."""
    told = zip(values, schema, parser, strict=True)
    return {json.dumps(value): (ours, theirs) for value, ours, theirs in told if ours != theirs}


def test_instances() -> None:
    told = without_examples("instance.yaml")
    assert len(told) > 600
    assert 100 < sum(told) < len(told) - 300
    found = unlike(instances(), told, (parses({"instances": [instance]}) for instance in instances()))
    assert set(found) == set(UNSAID_OF_INSTANCES)
    assert {value: why for value, why in UNSAID_OF_INSTANCES.items() if found[value] == (True, False)} == {
        value: why for value, why in UNSAID_OF_INSTANCES.items() if why == "no UTF-8"
    }


def test_parameters() -> None:
    told = without_examples("parameters.yaml")
    assert len(told) > 400
    assert 40 < sum(told) < len(told) - 200
    parsed = (parses({"instances": ["a"], "parameters": value}) for value in parameter_sets())
    found = unlike(parameter_sets(), told, parsed)
    assert set(found) == set(UNSAID_OF_PARAMETERS)
    assert set(found.values()) == {(True, False)}


def test_predictions() -> None:
    told = without_examples("prediction.yaml")
    assert told == [True] * 4 + [False] * len(NO_PREDICTIONS)


def test_each_form_has_an_example_that_is_one() -> None:
    told = verdicts()
    for name, values in EXAMPLES.items():
        assert told[name][-len(values) :] == [True] * len(values), name
    assert all(parses({"instances": [instance]}) for instance in EXAMPLES["instance.yaml"])
    assert all(parses({"instances": ["a"], "parameters": value}) for value in EXAMPLES["parameters.yaml"])
    vector, in_base64, _ = EXAMPLES["prediction.yaml"]
    assert np.frombuffer(base64.b64decode(str(in_base64)), "<f4").tolist() == np.array(vector, np.float32).tolist()
