"""Requests that share a batch: each gets its own answer, whatever its neighbours are.

The worker is stopped while the requests arrive, so that it finds them all waiting, and the metric MarvecBatchFill
proves that they did share a batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.contract.archives import BATCH_DELAY_MS, BOOM, POISON
from tests.contract.endpoint import Answer, Endpoint, refusal
from tests.contract.metrics import Metrics
from tests.contract.oracle import Oracle, assert_same

Send = Callable[[], Answer]
INTERNAL = refusal(500, "internal error: the server's log has the cause")
EXPLAIN = refusal(400, "explanations are not offered; send predictions to /predictions/NAME")
DEADLINE_S = 30.0


@contextmanager
def busy_worker(endpoint: Endpoint) -> Iterator[None]:
    """Keep the worker busy with a request of its own while the block runs: what is sent there waits in the queue."""
    metrics = Metrics(endpoint.server, endpoint.model)
    received = metrics.received()
    with ThreadPoolExecutor(1) as pool:
        with endpoint.stopped_worker():
            first = pool.submit(endpoint.ask, "first")
            _wait(lambda: metrics.received() == received + 1 and endpoint.pending() == 0)
            time.sleep(2 * BATCH_DELAY_MS / 1000)  # its batch is open to company for so long
            yield
        assert first.result().status == 200


def in_one_batch(endpoint: Endpoint, sends: Sequence[Send]) -> list[Answer]:
    """Send requests that reach the worker in one batch, and return their answers in order."""
    metrics = Metrics(endpoint.server, endpoint.model)
    with ThreadPoolExecutor(len(sends)) as pool:
        with busy_worker(endpoint):
            answers = [pool.submit(send) for send in sends]
            _wait(lambda: endpoint.pending() == len(sends))
        results = [answer.result() for answer in answers]
    fill = 100 * len(sends) / endpoint.batch_size
    assert metrics.reaches(fill, "MarvecBatchFill") == fill
    return results


def _wait(happened: Callable[[], bool]) -> None:
    """Wait for something.

    Raises:
        TimeoutError: It has not happened by the deadline.
    """
    deadline = time.monotonic() + DEADLINE_S
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not in {DEADLINE_S:g} s")
        time.sleep(0.02)


def test_one_five_and_no_instances_at_once(poisoned: Endpoint, tiny_oracle: Oracle) -> None:
    """B22: results are split by each request's own count."""
    five = [f"text {number}" for number in range(5)]
    one, several, none = in_one_batch(
        poisoned, [lambda: poisoned.ask("one"), lambda: poisoned.ask(*five), lambda: poisoned.post({"instances": []})]
    )
    assert_same(one.vectors(), tiny_oracle.vectors("one"))
    assert_same(several.vectors(), tiny_oracle.vectors(*five))
    assert none == refusal(400, "instances: expected at least one, got an empty list")


def test_good_and_bad_requests_in_one_batch(poisoned: Endpoint, tiny_oracle: Oracle) -> None:
    """B29, B27: a request that cannot be read, or not be served, costs its neighbours nothing."""
    good, malformed, typed, path, form, short, openai, unknown = in_one_batch(
        poisoned,
        [
            lambda: poisoned.ask("the rose", "a " * 300),
            lambda: poisoned.send(b'"Blue shirt!'),
            lambda: poisoned.ask("a", None),
            lambda: poisoned.post({"instances": ["a"]}, f"{poisoned.url}/1.0/v2"),
            lambda: poisoned.curl("--data", '{"instances": ["a"]}'),
            lambda: poisoned.ask("grow", outputDimensionality=2),
            lambda: poisoned.openai(input=["farm", "small"], model="m"),
            lambda: poisoned.ask("a", promptName="no"),
        ],
    )
    assert_same(good.vectors(), tiny_oracle.vectors("the rose", "a " * 300))
    assert malformed == refusal(
        400, "the body is not valid JSON: Unterminated string starting at: line 1 column 1 (char 0)"
    )
    assert typed == refusal(400, "instances[1]: expected a string, got null")
    assert path == refusal(404, "no such path; after the model's version only /v1/embeddings is served")
    assert form.status == 415
    assert_same(short.vectors(), poisoned.ask("grow", outputDimensionality=2).vectors())
    assert (openai.status, openai.json()["usage"]) == (200, {"prompt_tokens": 6, "total_tokens": 6})
    assert unknown == refusal(
        400, "parameters.promptName: no such prompt; prompts of this model: query, passage, Clustering"
    )


def test_only_bad_requests_in_one_batch(poisoned: Endpoint) -> None:
    """Nothing is left to embed, and nothing breaks."""
    sends: list[Send] = [lambda: poisoned.send(b"{"), lambda: poisoned.ask(5), lambda: poisoned.send(b"")]
    assert [answer.status for answer in in_one_batch(poisoned, sends)] == [400, 400, 400]


def test_numbers_that_are_not_finite_fail_their_own_request(poisoned: Endpoint, tiny_oracle: Oracle) -> None:
    """B34, A9 to A12: a NaN is a 500 of fixed words, never null or NaN in a 200, and touches no neighbour."""
    before, bad, after = in_one_batch(
        poisoned,
        [
            lambda: poisoned.ask("the rose", "a"),
            lambda: poisoned.ask("a", f"grow in {POISON}", "the"),
            lambda: poisoned.ask("small " * 9),
        ],
    )
    assert_same(before.vectors(), tiny_oracle.vectors("the rose", "a"))
    assert bad == INTERNAL
    assert_same(after.vectors(), tiny_oracle.vectors("small " * 9))


def test_an_encoder_that_raises_fails_the_request_that_made_it(poisoned: Endpoint, tiny_oracle: Oracle) -> None:
    """B29: one exception in a batch is not everyone's 503."""
    good, bad, other = in_one_batch(
        poisoned, [lambda: poisoned.ask("the rose"), lambda: poisoned.ask("a", BOOM), lambda: poisoned.ask("farm", "a")]
    )
    assert_same(good.vectors(), tiny_oracle.vectors("the rose"))
    assert bad == INTERNAL
    assert_same(other.vectors(), tiny_oracle.vectors("farm", "a"))


@pytest.mark.parametrize("header", ["describe", "Describe", "explain", "Explain"])
def test_a_clients_own_header_changes_nobodys_answer(poisoned: Endpoint, tiny_oracle: Oracle, header: str) -> None:
    """TorchServe marks describe and explain calls with headers that any client could send."""
    body = b'{"instances": ["the rose"]}'
    sends: list[Send] = [
        lambda: poisoned.ask("a"),
        lambda: poisoned.send(body, {header: "True"}),
        lambda: poisoned.ask("grow", "farm"),
    ]
    first, marked, last = in_one_batch(poisoned, sends)
    assert_same(first.vectors(), tiny_oracle.vectors("a"))
    assert_same(last.vectors(), tiny_oracle.vectors("grow", "farm"))
    assert_same(marked.vectors(), tiny_oracle.vectors("the rose"))
    assert poisoned.send(body, {header: "True"}) == poisoned.ask("the rose")  # and alone in its batch


def test_an_explanation_beside_predictions(poisoned: Endpoint, tiny_oracle: Oracle) -> None:
    url = f"{poisoned.server.url}/explanations/poisoned"
    sends: list[Send] = [
        lambda: poisoned.ask("a"),
        lambda: poisoned.post({"instances": ["a"]}, url),
        lambda: poisoned.ask("the"),
    ]
    first, explanation, last = in_one_batch(poisoned, sends)
    assert explanation == EXPLAIN
    assert_same(first.vectors(), tiny_oracle.vectors("a"))
    assert_same(last.vectors(), tiny_oracle.vectors("the"))


def test_a_describe_call_beside_predictions(poisoned: Endpoint, tiny_oracle: Oracle) -> None:
    """The management port's describe call waits in the same queue, and must find and leave the others unharmed."""
    told = poisoned.describe()
    with ThreadPoolExecutor(7) as pool:
        with busy_worker(poisoned):
            answers = {pool.submit(poisoned.ask, text): text for text in ("a", "the", "farm")}
            describing = pool.submit(poisoned.describe)
            answers |= {pool.submit(poisoned.ask, text): text for text in ("rose", "grow", "text")}
            _wait(lambda: poisoned.pending() >= 6)
        for answer, text in answers.items():
            assert_same(answer.result().vectors(), tiny_oracle.vectors(text))
        assert describing.result() == told


def test_a_batch_of_many_requests(strict: Endpoint, tiny_oracle: Oracle) -> None:
    """D76: an archive with room for 128 requests a batch; D66: many short texts at once, none comes back empty."""
    texts = [f"rose {number}" for number in range(64)]
    sends: list[Send] = [(lambda text=text: strict.ask(text)) for text in texts]  # type: ignore[misc]
    answers = in_one_batch(strict, sends)
    for answer, text in zip(answers, texts, strict=True):
        assert_same(answer.vectors(), tiny_oracle.vectors(text))
