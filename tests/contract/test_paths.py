"""Where requests are answered, what TorchServe itself refuses, and parameters in a URL."""

from __future__ import annotations

import pytest
import requests

from tests.contract.endpoint import Answer, Endpoint, curl, refusal, torchserve_refusal
from tests.contract.oracle import Oracle, assert_same

BODY = {"instances": ["the rose"]}
NOT_FOUND = torchserve_refusal(
    404, "ResourceNotFoundException", "Requested resource is not found, please refer to API document."
)
NOT_ALLOWED = torchserve_refusal(
    405, "MethodNotAllowedException", "Requested method is not allowed, please refer to API document."
)
PARAMETERS = "outputDimensionality, autoTruncate, normalize, promptName, taskType, encodingFormat"


@pytest.mark.parametrize(
    "path",
    [
        "/predictions/tiny",
        "/predictions/tiny/",
        "/predictions/tiny/1.0",
        "/predictions/tiny/1.0/",
        "/v1/models/tiny:predict",
        "/invocations?model_name=tiny",
    ],
)
def test_paths_of_a_model(tiny: Endpoint, tiny_oracle: Oracle, path: str) -> None:
    assert_same(tiny.post(BODY, tiny.server.url + path).vectors(), tiny_oracle.vectors("the rose"))


def test_a_path_below_the_model_that_is_not_openais(tiny: Endpoint) -> None:
    wanted = refusal(404, "no such path; after the model's version only /v1/embeddings is served")
    for path in ("v1", "v1/chat/completions", "v1/embeddings/more", "v2/embeddings"):
        assert tiny.post(BODY, f"{tiny.url}/1.0/{path}") == wanted


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (
            "/predictions/nothing",
            torchserve_refusal(404, "ModelNotFoundException", "Model not found: nothing"),
        ),
        (
            "/v1/models/nothing:predict",
            torchserve_refusal(404, "ModelNotFoundException", "Model not found: nothing"),
        ),
        (
            "/invocations?model_name=nothing",
            torchserve_refusal(404, "ModelNotFoundException", "Model not found: nothing"),
        ),
        (
            "/predictions/tiny/2.0",
            torchserve_refusal(
                404, "ModelVersionNotFoundException", "Model version: 2.0 does not exist for model: tiny"
            ),
        ),
        (
            "/predictions/tiny/v1/embeddings",
            torchserve_refusal(
                404, "ModelVersionNotFoundException", "Model version: v1 does not exist for model: tiny"
            ),
        ),
        ("/invocations", torchserve_refusal(400, "BadRequestException", "Parameter model_name is required.")),
        ("/nothing", NOT_FOUND),
        ("/v1/embeddings", NOT_FOUND),
        ("/", NOT_ALLOWED),
    ],
)
def test_what_torchserve_itself_refuses(tiny: Endpoint, path: str, wanted: Answer) -> None:
    assert tiny.post(BODY, tiny.server.url + path) == wanted


def test_explanations_are_refused(tiny: Endpoint) -> None:
    wanted = refusal(400, "explanations are not offered; send predictions to /predictions/NAME")
    assert tiny.post(BODY, f"{tiny.server.url}/explanations/tiny") == wanted
    assert tiny.post(BODY, f"{tiny.server.url}/explanations/tiny/1.0") == wanted


def test_a_second_registration_is_refused(tiny: Endpoint) -> None:
    """D76: the model API is off, so a model can be registered neither twice nor at all."""
    answer = requests.post(f"{tiny.server.management_url}/models?url=tiny.mar", timeout=30)
    assert Answer(answer.status_code, answer.headers["Content-Type"], answer.content) == NOT_ALLOWED


def test_the_query_string_on_predictions_is_dropped_by_torchserve(tiny: Endpoint) -> None:
    """TorchServe hands parameters in the URL over on /invocations alone; elsewhere the handler never sees them."""
    plain = tiny.post(BODY)
    assert tiny.post(BODY, f"{tiny.url}?outputDimensionality=2") == plain
    assert tiny.post(BODY, f"{tiny.url}?no_such_parameter=2") == plain


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("outputDimensionality=2", {"outputDimensionality": 2}),
        ("normalize=false", {"normalize": False}),
        ("promptName=query", {"promptName": "query"}),
        ("taskType=RETRIEVAL_DOCUMENT", {"taskType": "RETRIEVAL_DOCUMENT"}),
        ("encodingFormat=base64", {"encodingFormat": "base64"}),
        (
            "autoTruncate=true&normalize=true&outputDimensionality=3",
            {"autoTruncate": True, "normalize": True, "outputDimensionality": 3},
        ),
    ],
)
def test_parameters_in_the_url(tiny: Endpoint, query: str, parameters: dict[str, object]) -> None:
    url = f"{tiny.server.url}/invocations?model_name=tiny&{query}"
    assert tiny.post(BODY, url) == tiny.ask("the rose", **parameters)


def test_the_bodys_parameters_win_over_the_urls(tiny: Endpoint) -> None:
    url = f"{tiny.server.url}/invocations?model_name=tiny&outputDimensionality=7"
    assert tiny.post({**BODY, "parameters": {"outputDimensionality": 2}}, url).vectors().shape == (1, 2)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("outputDimensionality=0", "parameters.outputDimensionality: allowed are 1 to 32, got 0"),
        ("outputDimensionality=2.5", "parameters.outputDimensionality: expected a whole number, got a string"),
        ("outputDimensionality=", "parameters.outputDimensionality: expected a whole number, got a string"),
        ("normalize=yes", "parameters.normalize: expected true or false, got a string"),
        ("autoTruncate=True", "parameters.autoTruncate: expected true or false, got a string"),
        ("promptName=no", "parameters.promptName: no such prompt; prompts of this model: query, passage, Clustering"),
        ("encodingFormat=hex", "parameters.encodingFormat: expected one of float, base64"),
        ("top_k=3", f"query parameters: unknown key 'top_k'; known keys: {PARAMETERS}"),
        ("data=x", "send the JSON as the field body or data of the form; this one has body and data"),
    ],
)
def test_bad_parameters_in_the_url(tiny: Endpoint, query: str, message: str) -> None:
    url = f"{tiny.server.url}/invocations?model_name=tiny&{query}"
    assert tiny.post(BODY, url) == refusal(400, message)


def test_a_model_that_is_alone_answers_invocations_without_its_name(multilingual: Endpoint) -> None:
    """The path that some platforms fix; parameters in its URL count."""
    plain = multilingual.post(BODY, f"{multilingual.server.url}/invocations")
    assert plain == multilingual.post(BODY)
    short = multilingual.post(BODY, f"{multilingual.server.url}/invocations?outputDimensionality=256")
    assert short == multilingual.ask("the rose", outputDimensionality=256)
    assert short.vectors().shape == (1, 256)


def test_ping(tiny: Endpoint) -> None:
    assert curl(f"{tiny.server.url}/ping") == Answer(200, "application/json", b'{\n  "status": "Healthy"\n}\n')
