"""What is too much is a 413 with the limit and the count, before any work; what is only long is cut and answered."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import numpy as np
import pytest
import requests

from tests.contract.endpoint import Answer, Endpoint, refusal
from tests.contract.oracle import Oracle, assert_same

MAX_REQUEST_SIZE = 10 * 1024 * 1024
# TorchServe's own answer, before any handler: no body, so no content type.
BODY_TOO_LARGE = Answer(413, "", b"")


def test_instances(strict: Endpoint, minilm: Endpoint) -> None:
    assert strict.ask("a", "a", "a", outputDimensionality=8).status == 200
    wanted = refusal(413, "instances: 4 given, the limit is 3; send them in several requests")
    assert strict.ask("a", "a", "a", "a") == wanted
    assert strict.ask("a", 5, None, "a") == wanted
    assert strict.openai(input=["a"] * 4) == refusal(
        413, "input: 4 given, the limit is 3; send them in several requests"
    )
    assert minilm.ask(*["a"] * 2049) == refusal(
        413, "instances: 2049 given, the limit is 2048; send them in several requests"
    )


def test_tokens_of_a_request(strict: Endpoint) -> None:
    """Tokens count after truncation: two of the longest texts are 128."""
    long = "a " * 1000
    assert strict.ask(long, "a " * 34).status == 200
    wanted = "the request has {} tokens, the limit is 100; send it in parts"
    assert strict.ask(long, "a " * 35) == refusal(413, wanted.format(101))
    assert strict.ask(long, long) == refusal(413, wanted.format(128))
    assert strict.openai(input=[long, long]) == refusal(413, wanted.format(128))


def test_tokens_beyond_what_the_worker_can_compute_in_time(minilm: Endpoint) -> None:
    """The limit in force is measured by the worker when it starts, and told by describe."""
    limit = minilm.limit("max_request_tokens")
    started = time.monotonic()
    answer = minilm.ask(*["a " * 260] * 1200)
    assert answer == refusal(413, f"the request has {1200 * 256} tokens, the limit is {limit}; send it in parts")
    assert time.monotonic() - started < 20


def test_size_of_a_response(strict: Endpoint, tiny: Endpoint) -> None:
    """B38: refused before any work, since TorchServe would end the worker over it."""
    advice = "send fewer inputs, or ask for base64 or fewer dimensions"
    assert strict.ask("a", "a", "a") == refusal(413, f"the response could have 1644 bytes, the limit is 1500; {advice}")
    assert strict.ask("a", "a").status == 200
    assert strict.ask("a", "a", "a", encodingFormat="base64").status == 200
    assert strict.ask("a", "a", "a", outputDimensionality=16).status == 200
    assert tiny.ask(*[""] * 117_000) == refusal(
        413, f"the response could have 64116000 bytes, the limit is 64000000; {advice}"
    )


@pytest.mark.parametrize(
    "headers",
    [(), ("--header", "Expect:"), ("--header", "Transfer-Encoding: chunked")],
    ids=["expect", "at once", "chunked"],
)
def test_a_body_larger_than_max_request_size(tiny: Endpoint, tmp_path: Path, headers: tuple[str, ...]) -> None:
    file = tmp_path / "request.json"
    frame = b'{"instances": [""]}'
    file.write_bytes(frame.replace(b'""', b'"' + b"a" * (MAX_REQUEST_SIZE + 1 - len(frame)) + b'"'))
    arguments = ("--header", "Content-Type: application/json", *headers, "--data-binary", f"@{file}")
    assert tiny.curl(*arguments) == BODY_TOO_LARGE
    assert tiny.ask("a").status == 200


def test_a_body_of_exactly_max_request_size(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    frame = b'{"instances": ["the rose"]}'
    body = frame + b" " * (MAX_REQUEST_SIZE - len(frame))
    assert_same(tiny.send(body).vectors(), tiny_oracle.vectors("the rose"))
    assert tiny.send(body.replace(b"instances", b"instance_")) == refusal(
        400, "the body: unknown key 'instance_'; known keys: instances, parameters"
    )


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("a" * 130_000, "a" * 150),
        ("a" * 5_000_000, "a" * 150),
        ("日" * 130_000, "日" * 300),
        ("hello " * 100_000, "hello " * 300),
        ("Hello world, " * 10_000, ("Hello world, " * 3000)[:1200]),
    ],
    ids=["130,000 letters", "5,000,000 letters", "130,000 kanji", "600,000 in words", "130,000 in words"],
)
def test_long_texts_are_cut_and_answered(minilm: Endpoint, minilm_oracle: Oracle, text: str, same_as: str) -> None:
    """A19, A1: to WordPiece a word of more than 100 letters is one unknown token; all else is cut at 256 tokens."""
    started = time.monotonic()
    assert_same(minilm.ask(text).vectors(), minilm_oracle.vectors(same_as))
    assert time.monotonic() - started < 30


def test_2048_short_texts_at_once(minilm: Endpoint, minilm_oracle: Oracle) -> None:
    """B38: the answer of 9 MB fits, and every text has its own vector in its own place."""
    words = ["rose", "farm", "japan", "grow", "", "a small model"]
    texts = [words[number % 6] for number in range(2048)]
    wanted = minilm_oracle.vectors(*words)[np.arange(2048) % 6]
    assert_same(minilm.ask(*texts).vectors(), wanted)


def test_a_lone_request_does_not_wait_for_company(tiny: Endpoint) -> None:
    """D75: TorchServe's own 100 ms of batch delay would be in every one of these."""
    with requests.Session() as session:
        seconds = []
        for _ in range(15):
            started = time.perf_counter()
            assert session.post(tiny.url, json={"instances": ["a"]}, timeout=30).status_code == 200
            seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.06


def test_memory_stays_where_it_is(tiny: Endpoint) -> None:
    """D70 in short: texts of ever other lengths leave nothing behind in the worker."""
    worker = tiny.worker()
    resident = []
    with requests.Session() as session:
        for turn in range(6):
            for number in range(40):
                texts = ["a " * ((turn + number * place) % 61 + 1) for place in range(20)]
                assert session.post(tiny.url, json={"instances": texts}, timeout=30).status_code == 200
            resident.append(worker.memory_info().rss / 2**20)
    assert resident[-1] - median(resident[1:3]) < 12
