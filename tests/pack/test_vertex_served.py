"""model.mar on a real TorchServe whose Python has neither OpenVINO nor a tokenizer, as Google's prebuilt containers."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import requests
import yaml

from archiver.vertex_prebuilt import PACKAGES
from marvec.service import Service
from marvec.settings import read_settings
from tests.install.other_pythons import run
from tests.pack.conftest import PackedTwice
from tests.pack.prebuilt_container import for_this_python, python_of_the_container, torchserve

TEXT = "日本の薔薇農家 grows roses one can eat"
TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def service(twice: PackedTwice) -> Service:
    """Return what the usual archive answers with."""
    settings = read_settings(yaml.safe_load((twice.usual / "model-config.yaml").read_text(encoding="utf-8"))["handler"])
    return Service.load(twice.usual, settings, "cpu", response_timeout_s=120)


Expected = Callable[..., list[object]]


@pytest.fixture(scope="module")
def expected(service: Service) -> Expected:
    def answer(*instances: object, **parameters: object) -> list[object]:
        job = service.read({"instances": list(instances), "parameters": parameters}, {}, "")
        (vectors,) = service.compute([job])
        assert not isinstance(vectors, Exception)
        predictions: list[object] = json.loads(service.write(job, vectors))["predictions"]
        return predictions

    return answer


@pytest.fixture(scope="module")
def container(twice: PackedTwice, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the stand-in's Python, and a store with model.mar for it."""
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the bundle is locked for Python 3.11 beside 3.9")
    python = python_of_the_container()
    absent = [*PACKAGES, "transformers", "huggingface_hub", "marvec"]
    code = "import importlib.util, sys; print([name for name in sys.argv[1:] if importlib.util.find_spec(name)])"
    assert run([python, "-c", code, *absent], cwd=twice.store) == "[]\n"
    folder = tmp_path_factory.mktemp("container")
    return python, for_this_python(twice.store / "minilm.vertex" / "model.mar", folder)


@pytest.fixture(scope="module")
def enveloped(container: tuple[Path, Path]) -> Iterator[str]:
    with torchserve(*container, "service_envelope=json") as url:
        yield url


@pytest.fixture(scope="module")
def plain(container: tuple[Path, Path]) -> Iterator[str]:
    with torchserve(*container) as url:
        yield url


def ask(url: str, *instances: object, **parameters: object) -> requests.Response:
    body = {"instances": list(instances), **({"parameters": parameters} if parameters else {})}
    return requests.post(f"{url}/predictions/model", json=body, timeout=TIMEOUT_S)


def predictions(answer: requests.Response) -> list[Any]:
    assert (answer.status_code, answer.headers.get("Content-Type")) == (200, "application/json"), answer.text
    assert list(answer.json()) == ["predictions"]
    found: list[Any] = answer.json()["predictions"]
    return found


def vectors(given: list[Any]) -> npt.NDArray[np.float64]:
    """Return [instances, dimension], whichever the form of a prediction."""
    return np.array([item["embeddings"]["values"] if isinstance(item, dict) else item for item in given])


def b64(text: str) -> dict[str, dict[str, str]]:
    return {"data": {"b64": base64.b64encode(text.encode()).decode()}}


FORMS: dict[str, list[object]] = {
    "strings": ["a rose", "", TEXT],
    "base64": [b64("a rose"), b64(TEXT), b64("")],
    "objects": [{"data": TEXT}, {"content": TEXT, "title": "Roses"}, {"input_ids": [101, 3000, 102]}, b64("a")],
    "mixed": ["a rose", b64(TEXT), ["a row"], {"text": "a"}, {"content": "b"}],
}


@pytest.mark.parametrize("server", ["enveloped", "plain"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gets_the_vectors_of_the_usual_archive(
    form: str, server: str, expected: Expected, request: pytest.FixtureRequest
) -> None:
    got = predictions(ask(request.getfixturevalue(server), *FORMS[form]))
    wanted = expected(*FORMS[form])

    assert [type(item) for item in got] == [type(item) for item in wanted]
    assert [item["embeddings"]["statistics"] for item in got if isinstance(item, dict)] == [
        item["embeddings"]["statistics"] for item in wanted if isinstance(item, dict)
    ]
    assert vectors(got).shape == (len(FORMS[form]), 384)
    assert np.abs(vectors(got) - vectors(wanted)).max() < 1e-5


@pytest.mark.parametrize("server", ["enveloped", "plain"])
def test_rows_that_google_wraps_are_rows(server: str, expected: Expected, request: pytest.FixtureRequest) -> None:
    got = predictions(ask(request.getfixturevalue(server), {"data": ["a row"]}, {"data": "a text"}))

    assert np.abs(vectors(got) - vectors(expected("a row", "a text"))).max() < 1e-5


BAD: dict[str, tuple[list[object], str]] = {
    "number": (["a", 5], "instances[1]: expected a string, got a number"),
    "key": (
        ["a", {"txt": "b"}],
        "instances[1]: unknown key 'txt'; known keys: text, inputs, data, b64, input_ids, content, task_type, title",
    ),
    "no text": ([b64("a"), {"data": {"b64": "//4="}}], "instances[1].data.b64: not base64 of UTF-8 text"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_instance_is_a_400_that_says_which_and_why(bad: str, enveloped: str, plain: str) -> None:
    instances, message = BAD[bad]

    answer = ask(plain, *instances)
    assert (answer.status_code, answer.json()) == (400, {"error": message})

    # A request's own answer would become its predictions, so TorchServe's shape tells it.
    answer = ask(enveloped, *instances)
    assert (answer.status_code, answer.json()["code"], answer.json()["message"]) == (400, 400, message)


def test_a_request_that_is_too_large_is_told_so(enveloped: str, plain: str) -> None:
    message = "instances: 2049 given, the limit is 2048; send them in several requests"

    answer = ask(plain, *["a"] * 2049)
    assert (answer.status_code, answer.json()) == (413, {"error": message})

    answer = ask(enveloped, *["a"] * 2049)  # a 413 would become a 507
    assert (answer.status_code, answer.json()["code"], answer.json()["message"]) == (400, 400, message)


@pytest.mark.parametrize("server", ["enveloped", "plain"])
def test_bad_requests_harm_no_others_that_wait_with_them(
    server: str, expected: Expected, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(server)
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda i: ask(url, "a", 5) if i % 3 else ask(url, f"text {i}"), range(24)))

    assert [answer.status_code for answer in answers] == [400 if i % 3 else 200 for i in range(24)]
    for i in range(0, 24, 3):
        assert np.abs(vectors(predictions(answers[i])) - vectors(expected(f"text {i}"))).max() < 1e-5


def test_what_the_envelope_refuses_itself_is_its_own_bare_503(enveloped: str) -> None:
    """Known, and beyond a handler: no instances, and a text behind an object."""
    for instances in ([], [b64("a"), "b"]):
        answer = ask(enveloped, *instances)
        assert (answer.status_code, answer.json()["message"]) == (503, "Prediction failed")
    assert ask(enveloped, "a").status_code == 200


def test_parameters_and_openai_clients_are_served_where_there_is_no_envelope(plain: str, expected: Expected) -> None:
    got = predictions(ask(plain, "a rose", outputDimensionality=4))
    assert np.abs(vectors(got) - vectors(expected("a rose", outputDimensionality=4))).max() < 1e-5

    answer = requests.post(f"{plain}/predictions/model/1.0/v1/embeddings", json={"input": "a rose"}, timeout=TIMEOUT_S)
    assert answer.status_code == 200
    assert len(answer.json()["data"][0]["embedding"]) == 384
