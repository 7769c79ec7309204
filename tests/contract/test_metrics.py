"""Marvec's own metrics on the Prometheus port: each changes by exactly what was asked."""

from __future__ import annotations

import pytest

from tests.contract.endpoint import Endpoint
from tests.contract.metrics import Metrics
from tests.contract.oracle import Oracle

COUNTERS = ("MarvecTexts", "MarvecTokens", "MarvecTruncatedTexts", "MarvecRefusedRequests")


@pytest.fixture
def metrics(strict: Endpoint) -> Metrics:
    return Metrics(strict.server, "strict")


def changes(metrics: Metrics, before: dict[str, float], expected: dict[str, float]) -> dict[str, float]:
    """Return by how much the counters have grown, once they have, or at a deadline."""
    for name in COUNTERS:
        metrics.reaches(before[name] + expected[name], name)
    return {name: metrics.settled(name) - before[name] for name in COUNTERS}


@pytest.fixture
def before(metrics: Metrics) -> dict[str, float]:
    return {name: metrics.settled(name) for name in COUNTERS}


def test_texts_and_tokens(strict: Endpoint, tiny_oracle: Oracle, metrics: Metrics, before: dict[str, float]) -> None:
    assert strict.ask("the rose", "").status == 200
    assert strict.openai(input="query: farm").status == 200
    assert strict.ask({"input_ids": [2, 3]}, promptName=None).status == 200
    expected = {
        "MarvecTexts": 4.0,
        "MarvecTokens": float(tiny_oracle.token_count("the rose", "", "query: farm") + 2),
        "MarvecTruncatedTexts": 0.0,
        "MarvecRefusedRequests": 0.0,
    }
    assert changes(metrics, before, expected) == expected


def test_truncated_texts(strict: Endpoint, metrics: Metrics, before: dict[str, float]) -> None:
    assert strict.ask("a " * 62, "a").status == 200
    assert strict.ask("a " * 63, "a").status == 200
    expected = {
        "MarvecTexts": 4.0,
        "MarvecTokens": 2.0 * (64 + 3),
        "MarvecTruncatedTexts": 1.0,
        "MarvecRefusedRequests": 0.0,
    }
    assert changes(metrics, before, expected) == expected


def test_refused_requests_by_status(strict: Endpoint, metrics: Metrics, before: dict[str, float]) -> None:
    """Each refused request is counted once under its status, and none of its texts or tokens is."""
    statuses = {status: metrics.settled("MarvecRefusedRequests", Status=status) for status in ("400", "413", "415")}
    assert strict.ask(5).status == 400
    assert strict.send(b"{").status == 400
    assert strict.ask("a", "a", "a", "a").status == 413
    assert strict.curl("--data", "a").status == 415
    expected = {
        "MarvecTexts": 0.0,
        "MarvecTokens": 0.0,
        "MarvecTruncatedTexts": 0.0,
        "MarvecRefusedRequests": 4.0,
    }
    assert changes(metrics, before, expected) == expected
    grown = {
        status: metrics.value("MarvecRefusedRequests", Status=status) - value for status, value in statuses.items()
    }
    assert grown == {"400": 2.0, "413": 1.0, "415": 1.0}


def test_failures_are_counted_as_500(poisoned: Endpoint) -> None:
    metrics = Metrics(poisoned.server, "poisoned")
    before = metrics.settled("MarvecRefusedRequests", Status="500")
    assert poisoned.ask("japan").status == 500
    assert metrics.reaches(before + 1, "MarvecRefusedRequests", Status="500") == before + 1


def test_batch_fill_of_a_lone_request(strict: Endpoint, metrics: Metrics) -> None:
    """In percent of the 128 requests that a batch of this archive may hold."""
    assert strict.ask("a").status == 200
    assert metrics.reaches(100 / 128, "MarvecBatchFill") == 100 / 128


def test_the_metrics_of_one_model_are_not_anothers(tiny: Endpoint, metrics: Metrics, before: dict[str, float]) -> None:
    own = Metrics(tiny.server, "tiny")
    texts = own.settled("MarvecTexts")
    assert tiny.ask("a", "b").status == 200
    assert own.reaches(texts + 2, "MarvecTexts") == texts + 2
    assert metrics.settled("MarvecTexts") == before["MarvecTexts"]
