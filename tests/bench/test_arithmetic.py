"""The figures that single measurements are made of."""

from __future__ import annotations

import pytest

from bench.engine_process import forward_flops
from bench.json_cost import shares
from bench.reference import Agreement, agreement
from bench.result import Sample, Soak
from bench.scaling import core_counts
from bench.soak import at_rest, second_half_growth

MINILM = {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6}


def test_a_token_of_minilm_takes_21_million_operations_and_more_in_company() -> None:
    assert forward_flops([1], MINILM) == 6 * (8 * 384**2 + 4 * 384 * 1536 + 4 * 384) == 21_242_880
    assert forward_flops([100], MINILM) == 100 * 21_233_664 + 6 * 4 * 384 * 100**2
    assert forward_flops([3, 5], MINILM) == forward_flops([3], MINILM) + forward_flops([5], MINILM)


def test_agreement_is_the_mean_and_the_least_cosine() -> None:
    assert agreement([[1.0, 0.0], [3.0, 4.0]], [[2.0, 0.0], [4.0, 3.0]]) == Agreement(0.98, 0.96)
    with pytest.raises(ValueError, match=r"^zip\(\) argument 2 is longer than argument 1$"):
        agreement([[1.0]], [[1.0], [1.0]])


def test_jsons_share_is_what_base64_saves() -> None:
    def sample(system: str, latency_s: float) -> Sample:
        return Sample("tiny", system, "mixed", 2, 1, 256, 0, [latency_s], latency_s)

    found = shares([sample("marvec-float32", 0.5), sample("marvec-float32-base64", 0.375), sample("fastapi", 1.0)])
    assert found == {("tiny", "marvec-float32", "1x256"): 0.25}


def test_memory_is_at_rest_when_the_second_half_is_level() -> None:
    seconds = [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]
    level = Soak("tiny", "marvec-float32", 1, seconds, [100, 150, 190, 200, 200, 200])
    growing = Soak("tiny", "marvec-float32", 1, seconds, [100, 150, 190, 200, 210, 220])
    assert (second_half_growth(level), at_rest(level)) == (0.0, True)
    assert (second_half_growth(growing), at_rest(growing)) == (20 / 210, False)


def test_cores_are_doubled_up_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, counts in ((1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])):
        monkeypatch.setattr("os.sched_getaffinity", lambda pid, cores=cores: set(range(cores)))
        assert core_counts() == counts
