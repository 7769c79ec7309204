"""A real TorchServe with an embedding model and classifiers side by side: one contract, one code."""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
import yaml

from tests.contract.archives import BATCH_DELAY_MS, build, change
from tests.contract.endpoint import Answer, Endpoint, refusal
from tests.contract.metrics import Metrics
from tests.contract.test_batches import in_one_batch
from tests.models import classifiers
from tests.sentiment.oracle import MOST_DIFFERENCE, Oracle
from tests.server.running import Server

BATCH_SIZE = 8
LIMITS = {"max_instances": 8, "max_request_tokens": 100, "max_response_bytes": 1000, "openai_token_ids": False}
TEXT = "the small farm of a rose"


@pytest.fixture(scope="module")
def directory(classifier_dirs: Callable[..., Path]) -> Path:
    return classifier_dirs("bert")


@pytest.fixture(scope="module")
def oracle(directory: Path) -> Oracle:
    return Oracle(directory)


@pytest.fixture(scope="module")
def server(directory: Path, minilm_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    store = tmp_path_factory.mktemp("served") / "store"
    sentiment = build(store, "sentiment", directory, batch_size=BATCH_SIZE)
    change(sentiment, store / "labels.mar", {"model-config.yaml": _labels_alone})
    shutil.copy(minilm_store / "minilm.mar", store)
    with Server(store, "minilm", "sentiment", "labels") as running:
        yield running


def _labels_alone(content: bytes) -> bytes:
    config = yaml.safe_load(content)
    config["handler"]["model"]["output"] = "label"
    config["handler"]["limits"] = LIMITS
    return yaml.safe_dump({**config, "maxBatchDelay": BATCH_DELAY_MS}, sort_keys=False).encode()


@pytest.fixture(scope="module")
def sentiment(server: Server) -> Endpoint:
    return Endpoint(server, "sentiment", BATCH_SIZE)


@pytest.fixture(scope="module")
def labels(server: Server) -> Endpoint:
    return Endpoint(server, "labels", BATCH_SIZE)


def best(oracle: Oracle, *inputs: object) -> list[tuple[str, float]]:
    return [max(scores.items(), key=lambda item: item[1]) for scores in oracle.scores(inputs)]


def require_best(answer: Answer, expected: list[tuple[str, float]]) -> None:
    given = answer.predictions()
    assert [item["label"] for item in given] == [label for label, _ in expected]  # type: ignore[index]
    for item, (_, score) in zip(given, expected, strict=True):
        assert abs(item["score"] - score) <= MOST_DIFFERENCE  # type: ignore[index]


def test_both_kinds_answer_side_by_side(sentiment: Endpoint, oracle: Oracle) -> None:
    minilm = Endpoint(sentiment.server, "minilm", 16)
    with ThreadPoolExecutor(8) as pool:
        vectors = [pool.submit(minilm.ask, TEXT) for _ in range(8)]
        scored = [pool.submit(sentiment.ask, TEXT) for _ in range(8)]
    assert {answer.result().vectors().shape for answer in vectors} == {(1, 384)}
    for answer in scored:
        require_best(answer.result(), best(oracle, TEXT))
    assert requests.get(f"{sentiment.server.url}/ping", timeout=30).json() == {"status": "Healthy"}


def test_every_form_of_a_text_gets_the_same_answer(sentiment: Endpoint, oracle: Oracle) -> None:
    encoded = b64encode(TEXT.encode()).decode()
    forms: list[object] = [
        TEXT, [TEXT], {"text": TEXT}, {"inputs": TEXT}, {"data": TEXT}, {"b64": encoded}, {"data": {"b64": encoded}},
        {"content": TEXT},
    ]  # fmt: skip
    require_best(sentiment.ask(*forms), best(oracle, TEXT) * len(forms))


def test_googles_sample_request(labels: Endpoint, sentiment: Endpoint, oracle: Oracle) -> None:
    """The very body of the sample's curl and SDK calls; the archive or the request asks for the label alone."""
    instances = [{"data": {"b64": b64encode(TEXT.encode("utf-8")).decode("utf-8")}}]
    [(label, _)] = best(oracle, TEXT)
    body = f'{{"predictions":["{label}"]}}'.encode()
    assert labels.post({"instances": instances}) == Answer(200, "application/json", body)
    asked = {"instances": instances, "parameters": {"output": "label"}}
    assert sentiment.post(asked) == Answer(200, "application/json", body)
    curl = sentiment.curl("-H", "Content-Type: application/json; charset=utf-8", "-d", json.dumps(asked))
    assert curl == Answer(200, "application/json", body)


def test_pairs_and_long_texts(sentiment: Endpoint, oracle: Oracle) -> None:
    inputs = [{"text": "a rose", "text_pair": TEXT}, {"text": TEXT, "text_pair": "grow " * 90}, "in japan " * 90]
    require_best(sentiment.ask(*inputs), best(oracle, *inputs))
    refused = sentiment.ask(*inputs, autoTruncate=False)
    assert refused == refusal(400, "instances[1]: 99 tokens, the limit is 64; shorten it, or leave autoTruncate on")


def test_several_labels(sentiment: Endpoint, oracle: Oracle) -> None:
    [scores] = oracle.scores([TEXT])
    ranked = sorted(scores, key=lambda label: scores[label], reverse=True)
    [listed] = sentiment.ask(TEXT, scores="all").predictions()
    assert [item["label"] for item in listed] == ranked  # type: ignore[attr-defined]
    assert sentiment.ask(TEXT, topK=2.0, output="label").predictions() == [ranked[:2]]


def test_token_ids(sentiment: Endpoint, oracle: Oracle, directory: Path) -> None:
    from tokenizers import Tokenizer

    ids = Tokenizer.from_file(str(directory / "tokenizer.json")).encode(TEXT).ids
    require_best(sentiment.ask({"input_ids": ids}), best(oracle, TEXT))
    assert sentiment.ask({"input_ids": [1_000_000]}).status == 400


def test_good_and_bad_requests_share_a_batch(labels: Endpoint, oracle: Oracle) -> None:
    good, broken, key, many, long, none, path = in_one_batch(
        labels,
        [
            lambda: labels.ask(TEXT, "a", {"text": "a rose", "text_pair": "the farm"}),
            lambda: labels.send(b'{"instances": ["a'),
            lambda: labels.ask(TEXT, outputDimensionality=3),
            lambda: labels.ask(*["a"] * 9),
            lambda: labels.ask(*["a " * 50] * 2),
            lambda: labels.ask(None),
            lambda: labels.openai(input="a"),
        ],
    )
    pair = {"text": "a rose", "text_pair": "the farm"}
    assert good.predictions() == [label for label, _ in best(oracle, TEXT, "a", pair)]
    assert broken.status == 400
    assert key == refusal(
        400,
        "parameters: unknown key 'outputDimensionality'; known keys: topK, scores, threshold, output, autoTruncate",
    )
    assert many == refusal(413, "instances: 9 given, the limit is 8; send them in several requests")
    assert long == refusal(413, "the request has 104 tokens, the limit is 100; send it in parts")
    assert none == refusal(400, "instances[0]: expected a string, got null")
    assert path == refusal(404, "no such path; a classifier has none after its version")


def test_an_answer_that_could_be_too_large_is_refused_before_any_work(labels: Endpoint) -> None:
    assert labels.ask(*["a"] * 6, scores="all").status == 200
    assert labels.ask(*["a"] * 7, topK=2).status == 200
    assert labels.ask(*["a"] * 7, scores="all") == refusal(
        413,
        "the response could have 1036 bytes, the limit is 1000; send fewer inputs, or ask for fewer labels (topK)",
    )


def test_describe(sentiment: Endpoint) -> None:
    told = sentiment.describe()
    assert told["task"] == "classification"
    assert told["model"] == {
        "id": "bert",
        "max_length": 64,
        "labels": list(classifiers.LABELS),
        "problem_type": "single_label_classification",
        "output": "score",
        "pairs": True,
        "token_types": True,
    }
    drift, self_test = told["drift"], told["self_test"]
    assert isinstance(drift, dict)
    assert isinstance(self_test, dict)
    assert (drift["same_label"], drift["dtype"], drift["inputs"]) == (1.0, "float32", 51)
    assert drift["largest_difference"] < MOST_DIFFERENCE
    assert 0 <= self_test["golden_difference"] < MOST_DIFFERENCE


def test_metrics(sentiment: Endpoint) -> None:
    metrics = Metrics(sentiment.server, "sentiment")
    texts, refused = metrics.settled("MarvecTexts"), metrics.settled("MarvecRefusedRequests", Status="400")
    assert sentiment.ask("a", {"text": "a", "text_pair": "b"}).status == 200
    assert sentiment.ask("a", topK=9).status == 400
    assert metrics.reaches(texts + 2, "MarvecTexts") == texts + 2
    assert metrics.reaches(refused + 1, "MarvecRefusedRequests", Status="400") == refused + 1
