"""Every refusal of the contract in its exact words, as application/json, and never a word of the request in it."""

from __future__ import annotations

import base64

import pytest

from tests.contract.endpoint import Endpoint, refusal
from tests.contract.oracle import Oracle, assert_same

ONE_OF = "expected exactly one of text, inputs, data, b64, input_ids, content, got"
KEYS = "known keys: text, inputs, data, b64, input_ids, content, task_type, title"
PARAMETERS = "outputDimensionality, autoTruncate, normalize, promptName, taskType, encodingFormat"
TASKS = (
    "RETRIEVAL_QUERY, RETRIEVAL_DOCUMENT, QUESTION_ANSWERING, FACT_VERIFICATION, CODE_RETRIEVAL_QUERY, "
    "SEMANTIC_SIMILARITY, CLASSIFICATION, CLUSTERING"
)
EMPTY = 'the body is empty: send a JSON object such as {"instances": ["a text"]}'
LATIN_1 = base64.b64encode("é".encode("latin-1")).decode()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", EMPTY),
        (b" \r\n", EMPTY),
        (b"\xef\xbb\xbf", EMPTY),
        (b'"Blue shirt!', "the body is not valid JSON: Unterminated string starting at: line 1 column 1 (char 0)"),
        (
            b'{ "image": "I missed a quote}',
            "the body is not valid JSON: Unterminated string starting at: line 1 column 12 (char 11)",
        ),
        (b'{"instances": ["a"]} x', "the body is not valid JSON: Extra data: line 1 column 22 (char 21)"),
        (b"{'instances': ['a']}", "the body is not valid JSON: Expecting property name enclosed in double quotes: "
         "line 1 column 2 (char 1)"),
        (b"instances=a", "the body is not valid JSON: Expecting value: line 1 column 1 (char 0)"),
        (b'{"instances": ["\xff"]}', "the body is not valid UTF-8: byte 16"),
        (b'{"instances": ["\xed\xa0\x80"]}', "the body is not valid UTF-8: byte 16"),
        ('{"instances": ["a"]}'.encode("utf-16"), "the body is not valid UTF-8: byte 0"),
        (b'{"instances": ["a"], "parameters": {"outputDimensionality": NaN}}',
         "the body is not valid JSON: NaN is not a JSON number"),
        (b'{"instances": [-Infinity]}', "the body is not valid JSON: -Infinity is not a JSON number"),
        (b"[" * 100_000 + b"]" * 100_000, "the body is not valid JSON: nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "the body is not valid JSON: nested too deeply"),
        (b'{"instances": ' + b"[" * 900 + b"]" * 900 + b"}",
         "instances[0]: expected a string or a list of one string, got another list"),
        (b"5", "the body: expected an object, got a number"),
        (b"null", "the body: expected an object, got null"),
    ],
)  # fmt: skip
def test_bodies_that_are_no_request(tiny: Endpoint, body: bytes, message: str) -> None:
    """B27 among them: what cannot be read is a 400, and the worker lives on."""
    assert tiny.send(body) == refusal(400, message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "the body: expected an object, got a list"),
        (["a"], "the body: expected an object, got a list"),
        ("a", "the body: expected an object, got a string"),
        ({}, 'the body has no instances: send {"instances": ["a text"]}'),
        ({"parameters": {}}, 'the body has no instances: send {"instances": ["a text"]}'),
        ({"a": "1"}, "the body: unknown key 'a'; known keys: instances, parameters"),
        ({"inputs": ["a"]}, "the body: unknown key 'inputs'; known keys: instances, parameters"),
        ({"instances": []}, "instances: expected at least one, got an empty list"),
        ({"instances": "a"}, "instances: expected a list, got a string"),
        ({"instances": {"text": "a"}}, "instances: expected a list, got an object"),
        ({"instances": None}, "instances: expected a list, got null"),
        ({"instances": ["a"], "parameters": []}, "parameters: expected an object, got a list"),
        ({"instances": ["a"], "parameters": "x"}, "parameters: expected an object, got a string"),
    ],
)
def test_bodies_of_another_shape(tiny: Endpoint, body: object, message: str) -> None:
    """B28 and B36: what is missing is said, and no instances are a 400."""
    assert tiny.post(body) == refusal(400, message)


@pytest.mark.parametrize(
    ("instance", "message"),
    [
        (5, ": expected a string, got a number"),
        (5.0, ": expected a string, got a number"),
        (True, ": expected a string, got a boolean"),
        (None, ": expected a string, got null"),
        ([], ": expected a string or a list of one string, got another list"),
        (["a", "b"], ": expected a string or a list of one string, got another list"),
        ([["a"]], ": expected a string or a list of one string, got another list"),
        ([5], ": expected a string or a list of one string, got another list"),
        ({}, f": {ONE_OF} none"),
        ({"title": "t"}, f": {ONE_OF} none"),
        ({"text": "a", "b64": "YQ=="}, f": {ONE_OF} text and b64"),
        ({"txt": "a"}, f": unknown key 'txt'; {KEYS}"),
        ({"text": 5}, ".text: expected a string, got a number"),
        ({"text": None}, ".text: expected a string, got null"),
        ({"text": ["a"]}, ".text: expected a string, got a list"),
        ({"inputs": True}, ".inputs: expected a string, got a boolean"),
        ({"text": "a", "title": "t"}, ".title: goes with content, not with text"),
        ({"text": "a", "task_type": "CLUSTERING"}, ".task_type: goes with content, not with text"),
        ({"b64": "a"}, ".b64: not valid base64"),
        ({"b64": "YQ=="[:3]}, ".b64: not valid base64"),
        ({"b64": "é==="}, ".b64: not valid base64"),
        ({"b64": 5}, ".b64: expected a string, got a number"),
        ({"b64": LATIN_1}, ".b64: not base64 of UTF-8 text"),
        ({"data": {"b64": LATIN_1}}, ".data.b64: not base64 of UTF-8 text"),
        ({"data": {}}, ".data.b64: expected a string, got null"),
        ({"data": {"text": "a"}}, ".data: unknown key 'text'; known keys: b64"),
        ({"data": 5}, ".data: expected a string, got a number"),
        ({"input_ids": []}, ".input_ids: expected at least one, got an empty list"),
        ({"input_ids": "101"}, ".input_ids: expected a list, got a string"),
        ({"input_ids": [2, True]}, ".input_ids[1]: expected a whole number, got a boolean"),
        ({"input_ids": [2, "3"]}, ".input_ids[1]: expected a whole number, got a string"),
        ({"input_ids": [2.5]}, ".input_ids[0]: expected a whole number, got 2.5"),
        ({"input_ids": [2], "title": "t"}, ".title: goes with content, not with input_ids"),
        ({"content": 5}, ".content: expected a string, got a number"),
        ({"content": "a", "title": 5}, ".title: expected a string, got a number"),
        ({"content": "a", "task_type": 5}, ".task_type: expected a string, got a number"),
        ({"content": "a", "task_type": "QUERY"}, f".task_type: unknown task type; known: {TASKS}"),
        ({"content": "a", "mime_type": "text"}, f": unknown key 'mime_type'; {KEYS}"),
    ],
)
def test_instances(tiny: Endpoint, instance: object, message: str) -> None:
    """B24 among them: every other type than a text is named with its place."""
    assert tiny.ask("fine", instance) == refusal(400, f"instances[1]{message}")


@pytest.mark.parametrize("token", [-1, 10**6, 1e300, -(2**63), 2**64])
def test_token_ids_out_of_range(tiny: Endpoint, tiny_oracle: Oracle, token: float) -> None:
    highest = tiny_oracle.embedder.tokenizer.vocab_size - 1
    wanted = f"instances[0].input_ids[1]: {int(token)} is not a token id of this model; allowed are 0 to {highest}"
    assert tiny.ask({"input_ids": [2, token]}) == refusal(400, wanted)
    assert tiny.ask({"input_ids": [2, highest]}).status == 200


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("outputDimensionality", 256.5, "outputDimensionality: expected a whole number, got 256.5"),
        ("outputDimensionality", 0, "outputDimensionality: allowed are 1 to 384, got 0"),
        ("outputDimensionality", -1, "outputDimensionality: allowed are 1 to 384, got -1"),
        ("outputDimensionality", 99999, "outputDimensionality: allowed are 1 to 384, got 99999"),
        ("outputDimensionality", "256", "outputDimensionality: expected a whole number, got a string"),
        ("outputDimensionality", True, "outputDimensionality: expected a whole number, got a boolean"),
        ("outputDimensionality", [256], "outputDimensionality: expected a whole number, got a list"),
        ("autoTruncate", "true", "autoTruncate: expected true or false, got a string"),
        ("autoTruncate", 1, "autoTruncate: expected true or false, got a number"),
        ("normalize", 0.0, "normalize: expected true or false, got a number"),
        ("promptName", "query", "promptName: no such prompt; prompts of this model: none"),
        ("promptName", 5, "promptName: expected a string, got a number"),
        ("taskType", "QUERY", f"taskType: unknown task type; known: {TASKS}"),
        ("taskType", {}, "taskType: expected a string, got an object"),
        ("encodingFormat", "int8", "encodingFormat: expected one of float, base64"),
        ("encodingFormat", 5, "encodingFormat: expected a string, got a number"),
    ],
)
def test_parameters(minilm: Endpoint, name: str, value: object, message: str) -> None:
    """B33 among them: what the Vertex SDK makes of a number is taken, all else is refused by name."""
    assert minilm.ask("a", **{name: value}) == refusal(400, f"parameters.{message}")


def test_whole_doubles_as_the_vertex_sdk_sends_them(minilm: Endpoint, minilm_oracle: Oracle) -> None:
    """B33: protobuf turns 256 into 256.0."""
    got = minilm.ask("a", outputDimensionality=256.0, autoTruncate=True).vectors()
    assert got.shape == (1, 256)
    assert_same(got, minilm.ask("a", outputDimensionality=256).vectors())
    assert_same(minilm.ask("a", outputDimensionality=384.0).vectors(), minilm_oracle.vectors("a"))


def test_unknown_parameters_and_prompts_are_listed(tiny: Endpoint) -> None:
    assert tiny.ask("a", dimensions=8) == refusal(
        400, f"parameters: unknown key 'dimensions'; known keys: {PARAMETERS}"
    )
    assert tiny.ask("a", promptName="document") == refusal(
        400, "parameters.promptName: no such prompt; prompts of this model: query, passage, Clustering"
    )
    assert tiny.ask("a", promptName="query", taskType="CLUSTERING") == refusal(
        400, "parameters.promptName and parameters.taskType both choose a prompt: send one of them"
    )
    assert tiny.ask({"input_ids": [2]}, promptName="query") == refusal(
        400, "instances[0].input_ids: no prompt can go before token ids; put its ids among them"
    )


def test_a_long_unknown_key_is_shown_short(tiny: Endpoint) -> None:
    assert tiny.post({"é" * 5000: 1}) == refusal(
        400, "the body: unknown key '" + "\\xe9" * 40 + "...'; known keys: instances, parameters"
    )


def test_too_long_a_text_that_must_be_whole(tiny: Endpoint) -> None:
    assert tiny.ask("a", "a " * 63, autoTruncate=False) == refusal(
        400, "instances[1]: 65 tokens, the limit is 64; shorten it, or leave autoTruncate on"
    )
    assert tiny.ask({"input_ids": [2] * 65}, autoTruncate=False) == refusal(
        400, "instances[0].input_ids: 65 tokens, the limit is 64; shorten it, or leave autoTruncate on"
    )
