"""The handler of model.mar behind TorchServe's own JSON envelope and without it, in this process."""

from __future__ import annotations

import base64
import copy
import json
import sys
from pathlib import Path

import pytest
import torch
from ts.context import Context, RequestProcessor
from ts.torch_handler.request_envelope.json import JSONEnvelope
from ts.utils.util import PredictionException, list_classes_from_module

import prebuilt_handler
from embedding_handler import EmbeddingHandler
from prebuilt_handler import PrebuiltHandler
from tests.models.tiny import TinyModels
from tests.unit.handler_service import service_of, write_archive

ROOT = Path(__file__).resolve().parent.parent.parent
FORMS: dict[str, list[object]] = {
    "strings": ["a rose", "", "日本の薔薇"],
    "a string first": ["a rose", {"text": "b"}, ["a row"], {"b64": "YQ=="}, {"data": {"b64": "YQ=="}}],
    "base64": [{"data": {"b64": "5pel5pys"}}, {"b64": "YQ=="}, {"data": {"b64": ""}}],
    "objects": [{"inputs": "a"}, {"data": "a"}, {"input_ids": [2, 5, 3]}, {"content": "a", "title": "t"}],
}
# An instance behind one that gives a vector, and what is answered; behind the envelope it is told the same way.
REFUSED = {
    "number": (5, "instances[1]: expected a string, got a number"),
    "null": (None, "instances[1]: expected a string, got null"),
    "two keys": (
        {"text": "a", "data": "b"},
        "instances[1]: expected exactly one of text, inputs, data, b64, input_ids, content, got text and data",
    ),
    "no key": (
        {},
        "instances[1]: expected exactly one of text, inputs, data, b64, input_ids, content, got none",
    ),
    "no text": ({"data": {"b64": "//4="}}, "instances[1].data.b64: not base64 of UTF-8 text"),
    "misplaced base64": ({"text": {"b64": "YQ=="}}, "instances[1].text: expected a string, got an object"),
}


@pytest.fixture(scope="module")
def archive(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an unpacked archive of a tiny model."""
    return write_archive(tmp_path_factory.mktemp("archive"), tiny_models("bert"), {"minWorkers": 2})


@pytest.fixture(scope="module")
def prebuilt(archive: Path) -> tuple[PrebuiltHandler, Context]:
    handler = PrebuiltHandler()
    return handler, service_of(archive, handler, 1).context


@pytest.fixture(scope="module")
def usual(archive: Path) -> tuple[EmbeddingHandler, Context]:
    handler = EmbeddingHandler()
    return handler, service_of(archive, handler, 1).context


def call(served: tuple[EmbeddingHandler, Context], *bodies: object, envelope: bool = False) -> list[tuple[int, object]]:
    """Call a handler with requests whose JSON TorchServe has decoded; each one's status and decoded answer."""
    handler, context = served
    # The envelope changes what it gets, so that each call needs a copy.
    rows = [{"body": copy.deepcopy(body)} for body in bodies]
    context.request_processor = [RequestProcessor({"body": {"content-type": "application/json"}}) for _ in bodies]
    context.request_ids = {i: f"r{i}" for i in range(len(bodies))}
    context.metrics.request_ids = context.request_ids
    answers = (JSONEnvelope(handler.handle).handle if envelope else handler.handle)(rows, context)
    assert len(answers) == len(bodies)
    assert all(context.get_response_content_type(i) == "application/json" for i in range(len(bodies)))
    return [(context.get_response_status(i)[0], json.loads(answer)) for i, answer in enumerate(answers)]


def instances(*given: object) -> dict[str, object]:
    return {"instances": list(given)}


def predictions(answer: tuple[int, object]) -> list[object]:
    """The predictions of a 200, the vectors rounded to what company may change."""
    status, body = answer
    assert status == 200
    assert isinstance(body, dict)
    return [_rounded(item) for item in body["predictions"]]


def _rounded(item: object) -> object:
    if isinstance(item, float):
        return pytest.approx(item, abs=1e-6)
    if isinstance(item, dict):
        return {name: _rounded(value) for name, value in item.items()}
    return [_rounded(value) for value in item] if isinstance(item, list) else item


@pytest.mark.parametrize("envelope", [True, False], ids=["envelope", "no envelope"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_instance_gets_the_answer_that_it_has_everywhere(
    form: str,
    envelope: bool,
    prebuilt: tuple[PrebuiltHandler, Context],
    usual: tuple[EmbeddingHandler, Context],
) -> None:
    body = instances(*FORMS[form])
    (answer,) = call(prebuilt, body, envelope=envelope)
    (expected,) = call(usual, body)

    assert answer[0] == 200
    assert isinstance(answer[1], dict)
    assert answer[1]["predictions"] == predictions(expected)
    assert len(predictions(answer)) == len(FORMS[form])


@pytest.mark.parametrize("envelope", [True, False], ids=["envelope", "no envelope"])
def test_what_google_wraps_is_unwrapped(
    envelope: bool, prebuilt: tuple[PrebuiltHandler, Context], usual: tuple[EmbeddingHandler, Context]
) -> None:
    (answer,) = call(prebuilt, instances({"data": "a rose"}, {"data": ["a row"]}), envelope=envelope)
    (expected,) = call(usual, instances("a rose", ["a row"]))

    assert isinstance(answer[1], dict)
    assert answer[1]["predictions"] == predictions(expected)


@pytest.mark.parametrize("first", ["a", {"text": "a"}], ids=["string", "object"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_instance_is_told_in_the_same_words(
    case: str, first: object, prebuilt: tuple[PrebuiltHandler, Context]
) -> None:
    bad, message = REFUSED[case]

    assert call(prebuilt, instances(first, bad)) == [(400, {"error": message})]
    if isinstance(first, dict) and not isinstance(bad, dict):
        # The envelope's own mistake, before any handler is asked: after one object it takes all for objects.
        with pytest.raises(AttributeError, match="has no attribute 'keys'"):
            call(prebuilt, instances(first, bad), envelope=True)
    else:
        with pytest.raises(PredictionException) as refusal:
            call(prebuilt, instances(first, bad), envelope=True)
        assert (refusal.value.message, refusal.value.error_code) == (message, 400)


def test_what_concerns_the_whole_request_is_told_too(prebuilt: tuple[PrebuiltHandler, Context]) -> None:
    message = "instances: 2049 given, the limit is 2048; send them in several requests"

    assert call(prebuilt, instances(*["a"] * 2049)) == [(413, {"error": message})]
    with pytest.raises(PredictionException) as refusal:
        call(prebuilt, instances(*["a"] * 2049), envelope=True)
    assert (refusal.value.message, refusal.value.error_code) == (message, 400)


def test_parameters_are_heeded_where_no_envelope_drops_them(prebuilt: tuple[PrebuiltHandler, Context]) -> None:
    body = {**instances("a"), "parameters": {"outputDimensionality": 4.0}}
    (plain,), (dropped,) = call(prebuilt, body), call(prebuilt, body, envelope=True)

    assert [len(predictions(answer)[0]) for answer in (plain, dropped)] == [4, 32]  # type: ignore[arg-type]


def test_requests_that_share_a_batch_keep_their_own_predictions(prebuilt: tuple[PrebuiltHandler, Context]) -> None:
    bodies = [instances("a", "b"), instances("c"), instances("d", "e", "f")]
    together = call(prebuilt, *bodies, envelope=True)
    alone = [call(prebuilt, body, envelope=True)[0] for body in bodies]

    assert [answer[1] for answer in together] == [{"predictions": predictions(answer)} for answer in alone]


def test_without_an_envelope_a_bad_request_harms_no_neighbour(prebuilt: tuple[PrebuiltHandler, Context]) -> None:
    first, second, third = call(prebuilt, instances("a"), instances(), bytearray(b'{"instances": ["a"'))

    assert first[0] == 200
    assert second == (400, {"error": "instances: expected at least one, got an empty list"})
    assert third[0] == 400


def test_describe_is_still_answered(prebuilt: tuple[PrebuiltHandler, Context]) -> None:
    handler, context = prebuilt
    context.request_processor = [RequestProcessor({"describe": "True"})]

    assert handler.handle([{}], context) == [handler.describe_handle()]


def test_base64_that_the_envelope_decoded_is_not_taken_for_text_of_another_encoding(
    prebuilt: tuple[PrebuiltHandler, Context],
) -> None:
    latin = base64.b64encode("Größe".encode("latin-1")).decode()
    with pytest.raises(PredictionException) as refusal:
        call(prebuilt, instances({"b64": latin}), envelope=True)

    assert refusal.value.message == "instances[0].b64: not base64 of UTF-8 text"


@pytest.mark.parametrize(("variables", "threads"), [({}, 3), ({"OMP_NUM_THREADS": "6"}, 6)])
def test_each_worker_takes_its_share_of_the_cores(
    variables: dict[str, str], threads: int, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    before = torch.get_num_threads()
    torch.set_num_threads(6)
    try:
        service_of(archive, PrebuiltHandler(), 1)  # minWorkers is 2
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_torchserve_finds_one_class_and_the_bundled_packages_come_first() -> None:
    assert list_classes_from_module(prebuilt_handler) == [PrebuiltHandler]
    assert str(ROOT / "handler" / "packages") in sys.path
