"""The wire contract's requests: every form of instance and parameter, every refusal in its exact words."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

import pytest

from marvec import embedding_request
from marvec.embedding_parameters import EmbeddingParameters
from marvec.embedding_request import EmbeddingRequest
from marvec.errors import MarvecError
from marvec.instances import Input
from marvec.settings import EmbeddingModel, EmbeddingSettings, LimitSettings

PROMPTS = {"query": "query: ", "passage": "passage: ", "Clustering": "cluster: "}
SETTINGS = EmbeddingSettings(
    EmbeddingModel("org/m", None, 8, 4, ("mean",), True, prompts=PROMPTS), limits=LimitSettings(max_instances=3)
)
PLAIN = EmbeddingParameters(4, True, True, "", False, "float")


def parse(
    body: object, path: str = "", settings: EmbeddingSettings = SETTINGS, query: Mapping[str, str] | None = None
) -> EmbeddingRequest:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return embedding_request.parse(sent, settings, query or {}, path)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def one(instance: object, **parameters: object) -> Input:
    return parse({"instances": [instance], "parameters": parameters}).inputs[0]


@pytest.mark.parametrize(
    ("instance", "text"),
    [
        ("a", "a"),
        ("", ""),
        (" \n", " \n"),
        ("\ud800", "\ufffd"),
        ("hello\x00world", "hello\x00world"),
        ("👨‍👩‍👧‍👦", "👨‍👩‍👧‍👦"),
        ({"text": "a"}, "a"),
        ({"inputs": "a"}, "a"),
        ({"data": "a"}, "a"),
        (["a"], "a"),
        ({"b64": b64("日本".encode())}, "日本"),
        ({"data": {"b64": b64(b"a")}}, "a"),
    ],
)
def test_forms_of_a_text(instance: object, text: str) -> None:
    assert one(instance) == Input("instances[0]", text)


def test_token_ids_may_be_doubles() -> None:
    assert one({"input_ids": [101, 7.0, 102.0]}) == Input("instances[0].input_ids", "", [101, 7, 102])


def test_google_form_is_answered_in_detail() -> None:
    assert one({"content": "c", "title": "t"}) == Input("instances[0]", "t\nc", detailed=True)
    assert one({"content": "c", "task_type": None, "title": None}) == Input("instances[0]", "c", detailed=True)


@pytest.mark.parametrize(
    ("task_type", "prompt"),
    [
        ("RETRIEVAL_QUERY", "query: "),
        ("QUESTION_ANSWERING", "query: "),
        ("FACT_VERIFICATION", "query: "),
        ("CODE_RETRIEVAL_QUERY", "query: "),
        ("RETRIEVAL_DOCUMENT", "passage: "),
        ("CLUSTERING", "cluster: "),
        ("SEMANTIC_SIMILARITY", ""),
    ],
)
def test_task_types_choose_prompts(task_type: str, prompt: str) -> None:
    assert one({"content": "c", "task_type": task_type}).text == prompt + "c"
    assert one("c", taskType=task_type).text == prompt + "c"


def test_an_instances_task_type_goes_before_the_requests_prompt() -> None:
    assert one({"content": "c", "task_type": "CLUSTERING", "title": "t"}, promptName="query").text == "cluster: t\nc"


def test_the_default_prompt_is_for_texts_that_name_none() -> None:
    model = EmbeddingModel("m", None, 8, 4, ("mean",), True, prompts=PROMPTS, default_prompt="query")
    parsed = parse({"instances": ["a", {"input_ids": [1]}]}, settings=EmbeddingSettings(model))
    assert [(item.text, item.ids) for item in parsed.inputs] == [("query: a", None), ("", [1])]
    assert parse(
        {"instances": ["a"], "parameters": {"promptName": "passage"}}, settings=EmbeddingSettings(model)
    ).inputs == [Input("instances[0]", "passage: a")]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (None, PLAIN),
        ({}, PLAIN),
        ({"outputDimensionality": 2}, EmbeddingParameters(2, True, True, "", False, "float")),
        ({"outputDimensionality": 2.0}, EmbeddingParameters(2, True, True, "", False, "float")),
        ({"autoTruncate": False, "normalize": False}, EmbeddingParameters(4, False, False, "", False, "float")),
        ({"promptName": "query"}, EmbeddingParameters(4, True, True, "query: ", True, "float")),
        ({"encodingFormat": "base64"}, EmbeddingParameters(4, True, True, "", False, "base64")),
        ({"outputDimensionality": None, "promptName": None}, PLAIN),
    ],
)
def test_parameters(parameters: object, expected: EmbeddingParameters) -> None:
    assert parse({"instances": ["a"], "parameters": parameters}).parameters == expected


def test_the_archives_own_dimension_is_the_default_and_more_may_be_asked() -> None:
    settings = EmbeddingSettings(EmbeddingModel("m", None, 8, 4, ("mean",), True, default_dimension=2))
    assert parse({"instances": ["a"]}, settings=settings).parameters.dimension == 2
    assert parse({"input": "a", "dimensions": 4}, "v1/embeddings", settings).parameters.dimension == 4


def test_an_empty_prompt_name_asks_for_no_prompt() -> None:
    settings = EmbeddingSettings(
        EmbeddingModel("m", None, 8, 4, ("mean",), True, prompts=PROMPTS, default_prompt="query")
    )
    parsed = parse({"instances": ["a"], "parameters": {"promptName": ""}}, settings=settings)
    assert parsed.inputs == [Input("instances[0]", "a")]
    assert parse({"instances": ["a"]}, query={"outputDimensionality": "3.0"}).parameters.dimension == 3


def test_query_parameters_are_read_and_the_body_wins() -> None:
    query = {"outputDimensionality": "2", "autoTruncate": "false", "normalize": "true", "encodingFormat": "base64"}
    assert parse({"instances": ["a"]}, query=query).parameters == EmbeddingParameters(
        2, False, True, "", False, "base64"
    )
    body = {"instances": ["a"], "parameters": {"outputDimensionality": 3}}
    assert parse(body, query=query).parameters.dimension == 3


ONE_OF = "expected exactly one of text, inputs, data, b64, input_ids, content, got"
KEYS = "known keys: text, inputs, data, b64, input_ids, content, task_type, title"
PARAMETERS = "outputDimensionality, autoTruncate, normalize, promptName, taskType, encodingFormat"
TASKS = (
    "RETRIEVAL_QUERY, RETRIEVAL_DOCUMENT, QUESTION_ANSWERING, FACT_VERIFICATION, CODE_RETRIEVAL_QUERY, "
    "SEMANTIC_SIMILARITY, CLASSIFICATION, CLUSTERING"
)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ([], 400, "the body: expected an object, got a list"),
        ("a", 400, "the body: expected an object, got a string"),
        (None, 400, "the body: expected an object, got null"),
        ({}, 400, 'the body has no instances: send {"instances": ["a text"]}'),
        ({"instance": ["a"]}, 400, "the body: unknown key 'instance'; known keys: instances, parameters"),
        ({"instances": []}, 400, "instances: expected at least one, got an empty list"),
        ({"instances": "a"}, 400, "instances: expected a list, got a string"),
        ({"instances": None}, 400, "instances: expected a list, got null"),
        ({"instances": ["a"] * 4}, 413, "instances: 4 given, the limit is 3; send them in several requests"),
        ({"instances": ["a", 5]}, 400, "instances[1]: expected a string, got a number"),
        ({"instances": [5.0]}, 400, "instances[0]: expected a string, got a number"),
        ({"instances": [True]}, 400, "instances[0]: expected a string, got a boolean"),
        ({"instances": ["a", None]}, 400, "instances[1]: expected a string, got null"),
        ({"instances": [[["a"]]]}, 400, "instances[0]: expected a string or a list of one string, got another list"),
        ({"instances": [["a", "b"]]}, 400, "instances[0]: expected a string or a list of one string, got another list"),
        ({"instances": [{}]}, 400, f"instances[0]: {ONE_OF} none"),
        ({"instances": [{"text": "a", "b64": "YQ=="}]}, 400, f"instances[0]: {ONE_OF} text and b64"),
        ({"instances": [{"txt": "a"}]}, 400, f"instances[0]: unknown key 'txt'; {KEYS}"),
        ({"instances": [{"text": 5}]}, 400, "instances[0].text: expected a string, got a number"),
        ({"instances": [{"text": None}]}, 400, "instances[0].text: expected a string, got null"),
        ({"instances": [{"text": "a", "title": "t"}]}, 400, "instances[0].title: goes with content, not with text"),
        ({"instances": [{"b64": "a"}]}, 400, "instances[0].b64: not valid base64"),
        ({"instances": [{"b64": "é==="}]}, 400, "instances[0].b64: not valid base64"),
        ({"instances": [{"data": {"b64": b64(b"\xff")}}]}, 400, "instances[0].data.b64: not base64 of UTF-8 text"),
        ({"instances": [{"data": {}}]}, 400, "instances[0].data.b64: expected a string, got null"),
        ({"instances": [{"input_ids": []}]}, 400, "instances[0].input_ids: expected at least one, got an empty list"),
        ({"instances": [{"input_ids": "1"}]}, 400, "instances[0].input_ids: expected a list, got a string"),
        (
            {"instances": [{"input_ids": [1, True]}]},
            400,
            "instances[0].input_ids[1]: expected a whole number, got a boolean",
        ),
        ({"instances": [{"input_ids": [1.5]}]}, 400, "instances[0].input_ids[0]: expected a whole number, got 1.5"),
        (
            {"instances": [{"input_ids": [1]}], "parameters": {"promptName": "query"}},
            400,
            "instances[0].input_ids: no prompt can go before token ids; put its ids among them",
        ),
        (
            {"instances": [{"content": "a", "task_type": "QUERY"}]},
            400,
            f"instances[0].task_type: unknown task type; known: {TASKS}",
        ),
        ({"instances": [{"content": "a", "title": 1}]}, 400, "instances[0].title: expected a string, got a number"),
        ({"instances": ["a"], "parameters": []}, 400, "parameters: expected an object, got a list"),
        (
            {"instances": ["a"], "parameters": {"truncate": True}},
            400,
            f"parameters: unknown key 'truncate'; known keys: {PARAMETERS}",
        ),
        (
            {"instances": ["a"], "parameters": {"promptName": "document"}},
            400,
            "parameters.promptName: no such prompt; prompts of this model: query, passage, Clustering",
        ),
        (
            {"instances": ["a"], "parameters": {"promptName": "query", "taskType": "CLUSTERING"}},
            400,
            "parameters.promptName and parameters.taskType both choose a prompt: send one of them",
        ),
        (
            {"instances": ["a"], "parameters": {"encodingFormat": "int8"}},
            400,
            "parameters.encodingFormat: expected one of float, base64",
        ),
        (
            {"instances": ["a"], "parameters": {"autoTruncate": "true"}},
            400,
            "parameters.autoTruncate: expected true or false, got a string",
        ),
        (
            {"instances": ["a"], "parameters": {"normalize": 1}},
            400,
            "parameters.normalize: expected true or false, got a number",
        ),
    ],
)
def test_refusals(body: object, status: int, message: str) -> None:
    with pytest.raises(MarvecError) as caught:
        parse(body)
    assert (caught.value.status, str(caught.value)) == (status, message)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (0, "allowed are 1 to 4, got 0"),
        (-1, "allowed are 1 to 4, got -1"),
        (5, "allowed are 1 to 4, got 5"),
        (99999.0, "allowed are 1 to 4, got 99999"),
        (2.5, "expected a whole number, got 2.5"),
        ("2", "expected a whole number, got a string"),
        (True, "expected a whole number, got a boolean"),
    ],
)
def test_dimensions_out_of_range(value: object, problem: str) -> None:
    with pytest.raises(MarvecError) as caught:
        parse({"instances": ["a"], "parameters": {"outputDimensionality": value}})
    assert str(caught.value) == f"parameters.outputDimensionality: {problem}"
    with pytest.raises(MarvecError) as caught:
        parse({"input": "a", "dimensions": value}, "v1/embeddings")
    assert str(caught.value) == f"dimensions: {problem}"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"outputDimensionality": "x"}, "parameters.outputDimensionality: expected a whole number, got a string"),
        (
            {"outputDimensionality": "9" * 5000},
            "parameters.outputDimensionality: expected a whole number, got a string",
        ),
        ({"normalize": "yes"}, "parameters.normalize: expected true or false, got a string"),
        ({"top_k": "3"}, f"query parameters: unknown key 'top_k'; known keys: {PARAMETERS}"),
    ],
)
def test_query_refusals(query: dict[str, str], message: str) -> None:
    with pytest.raises(MarvecError) as caught:
        parse({"instances": ["a"]}, query=query)
    assert str(caught.value) == message


def test_another_path_is_not_found() -> None:
    with pytest.raises(MarvecError) as caught:
        parse({"instances": ["a"]}, "v2/embeddings")
    assert caught.value.status == 404
    assert str(caught.value) == "no such path; after the model's version only /v1/embeddings is served"


def test_no_message_holds_the_requests_text() -> None:
    for body in ({"instances": ["s3cret", 5]}, {"instances": [{"text": "s3cret", "b64": "s3cret"}]}, b'{"a": "s3cret'):
        with pytest.raises(MarvecError) as caught:
            parse(body)
        assert "s3cret" not in str(caught.value)
