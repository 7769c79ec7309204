"""What the describe call tells of a model, word for word."""

from __future__ import annotations

import os
from importlib import metadata
from platform import python_version

import marvec
from tests.contract.archives import PROMPTS, STRICT_LIMITS
from tests.contract.endpoint import Endpoint, refusal
from tests.contract.oracle import Oracle


def test_describe_tells_everything(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    """TorchServe leaves out what is null: here the revision and the default prompt."""
    told = tiny.describe()
    engine = told.pop("engine")
    assert isinstance(engine, dict)
    threads = engine.pop("threads")
    assert isinstance(threads, int)
    assert 1 <= threads <= len(os.sched_getaffinity(0))
    assert engine.pop("lanes") == threads
    assert engine == {"encoder": "openvino", "device": "cpu", "dtype": "float32", "max_batch_tokens": 512}
    drift = told.pop("drift")
    assert isinstance(drift, dict)
    assert drift.pop("largest_difference") < 1e-6
    assert drift == {
        "inputs": 27,
        "mean_cosine": 1.0,
        "worst_cosine": 1.0,
        "rank_correlation": 1.0,
        "dtype": "float32",
    }
    assert told == {
        "task": "embedding",
        "model": {
            "id": tiny_oracle.embedder.settings.model.id,
            "dimension": 32,
            "max_length": 64,
            "pooling": ["mean"],
            "normalize": True,
            "dense": [],
            "prompts": PROMPTS,
        },
        "limits": {
            "max_instances": 200_000,
            "max_request_tokens": tiny.limit("max_request_tokens"),
            "max_response_bytes": 64_000_000,
            "openai_token_ids": False,
        },
        "self_test": {"golden_cosine": 1.0},
        "versions": {
            "marvec": marvec.__version__,
            "python": python_version(),
            **{name: metadata.version(name) for name in ("torch", "openvino", "transformers", "tokenizers")},
        },
    }


def test_what_an_archive_for_gpus_tells_on_a_cpu(poisoned: Endpoint) -> None:
    """It has no graph, so nothing of a drift either."""
    told = poisoned.describe()
    engine = told["engine"]
    assert isinstance(engine, dict)
    del engine["threads"]
    assert engine == {
        "encoder": "transformers",
        "device": "cpu",
        "dtype": "float32",
        "max_batch_tokens": 1024,
        "lanes": 1,
    }
    assert "drift" not in told


def test_limits_in_force(strict: Endpoint, minilm: Endpoint) -> None:
    """A worker lowers max_request_tokens to what it can compute in time, never below one text."""
    assert strict.describe()["limits"] == STRICT_LIMITS
    assert 256 <= minilm.limit("max_request_tokens") <= 300_000


def test_threads_of_all_workers_fit_the_cores(tiny: Endpoint, multilingual: Endpoint) -> None:
    """D69: W workers of T threads are no more than the cores that this machine lends, or one thread each."""
    cores = len(os.sched_getaffinity(0))
    for endpoint, workers in ((tiny, 4), (multilingual, 1)):
        engine = endpoint.describe()["engine"]
        assert isinstance(engine, dict)
        assert 1 <= engine["threads"] <= max(1, cores // workers)


def test_a_client_cannot_describe_on_the_inference_port(tiny: Endpoint) -> None:
    empty = refusal(400, 'the body is empty: send a JSON object such as {"instances": ["a text"]}')
    assert tiny.curl("--header", "describe: True") == empty
    assert tiny.send(b'{"instances": ["a"]}', {"describe": "True"}) == tiny.ask("a")
