"""A real OpenAPI validator's verdicts on the schema files, and values to ask it about, most of them bad.

What the language of schemas cannot say is listed beside each task's tests.
"""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.contract import test_forms, test_refusals
from tests.install.other_pythons import environment_with
from vertex import schemas
from vertex.setting_values import Task

VALIDATOR = ["openapi-schema-validator==0.9.0", "openapi-spec-validator==0.9.0", "PyYAML==6.0.4"]
# Reads the schemas' folder from its argument and {file: [value, …]} from stdin; answers {file: [verdict, …]}.
PROGRAM = """
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
LATIN_1 = base64.b64encode("é".encode("latin-1")).decode()
TEXT_KEYS = ("text", "inputs", "data", "b64", "input_ids", "content")
GOOD = {"text": "a", "inputs": "a", "data": "a", "b64": "YQ==", "input_ids": [2], "content": "a", "text_pair": "b"}
EXTRAS = ("task_type", "title", "text_pair")
VALUES: tuple[object, ...] = (
    *("", "a", "日本", "YQ==", "YWI=", "YWJj", "YQ=", "YQ", "Y===", "=", "é===", LATIN_1, "CLUSTERING", "clustering"),
    *(None, True, False, 0, 1, -1, 2.0, 2.5, 384, 385, 256.0, 1e300, "256", "true", "query", "float", "base64"),
    *(0.5, -0.5, 1.5, 3, 4, "best", "all", "score", "label", "Label"),
    *([], [""], ["a"], ["a", "b"], [["a"]], [5], [None], [{}], [2, 3], [2.0, 1e300], [2.5], [True], [-1], ["2"]),
    *({}, {"b64": "YQ=="}, {"b64": ""}, {"b64": "a"}, {"b64": LATIN_1}, {"b64": 5}, {"b64": None}, {"text": "a"}),
    {"b64": "YQ==", "text": "a"},
)
# The text that base64 holds, and the range of ids, which the tokenizer checks once it knows the model.
NO_UTF_8 = ('{"b64": "6Q=="}', '{"data": {"b64": "6Q=="}}', '{"b64": "true"}', '{"b64": "best"}')
OUT_OF_RANGE = '{"input_ids": [-1]}'


@dataclass(frozen=True)
class Verdicts:
    """What the validator says of one schema.

    Attributes:
        values: What it was asked about.
        told: Its verdict on each.
        examples: The schema's own examples: of its forms, then of its properties.
        told_of_examples: Its verdict on each.
    """

    values: Sequence[object]
    told: Sequence[bool]
    examples: Sequence[object]
    told_of_examples: Sequence[bool]

    def unlike(self, parses: Callable[[object], bool]) -> dict[str, tuple[bool, bool]]:
        """Return where the parser says something else: value to (schema's verdict, parser's)."""
        told = ((value, ours, parses(value)) for value, ours in zip(self.values, self.told, strict=True))
        return {json.dumps(value): (ours, theirs) for value, ours, theirs in told if ours != theirs}


def ask(task: Task, values: Mapping[str, Iterable[object]]) -> dict[str, Verdicts]:
    """Ask the validator about all values at once; a schema that is no OpenAPI 3.0 ends it.

    Args:
        task: Whose schemas.
        values: What to ask, by the file's name.
    """
    asked = {name: (list(some), _examples(task, name)) for name, some in values.items()}
    done = subprocess.run(
        [
            str(environment_with(Path(sys.executable), VALIDATOR)),
            *("-W", "error", "-c", PROGRAM, str(schemas.path(task, "instance.yaml").parent)),
        ],
        input=json.dumps({name: [*some, *examples] for name, (some, examples) in asked.items()}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, list[bool]] = json.loads(done.stdout)
    return {
        name: Verdicts(some, told[name][: len(some)], examples, told[name][len(some) :])
        for name, (some, examples) in asked.items()
    }


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
        yield {"text": "a", key: value}
    for count in (2, 3):
        for keys in itertools.combinations((*TEXT_KEYS, *EXTRAS), count):
            yield {key: GOOD.get(key, "CLUSTERING") for key in keys}
    for key, good in GOOD.items():
        yield {key: good, "mime_type": "text/plain"}


def single_parameters(names: Sequence[str]) -> Iterator[object]:
    """Yield what may be `parameters` and what may not: no object at all, one of a single key, or of nothing but null.

    Args:
        names: The known parameters.
    """
    yield from VALUES
    for name, value in itertools.product((*names, "dimensions"), VALUES):
        yield {name: value}
    yield dict.fromkeys(names)


def _examples(task: Task, name: str) -> list[object]:
    schema = yaml.safe_load(schemas.read(task, name))
    of_properties = [{key: one["example"]} for key, one in schema.get("properties", {}).items()]
    return [*(form["example"] for form in schema.get("oneOf", [schema])), *of_properties]


def _first_arguments(test: object) -> Iterator[object]:
    (mark,) = test.pytestmark  # type: ignore[attr-defined]
    yield from (arguments[0] for arguments in mark.args[1])
