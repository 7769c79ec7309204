"""A text's vector is its own: alone, in any order, and beside neighbours of any length."""

from __future__ import annotations

import random

import numpy as np
import pytest

from archiver.options import PackOptions
from marvec.service import Service
from tests.models.tiny import KINDS, POOLINGS, Kind, Pooling, TinyModels
from tests.parity import texts
from tests.parity.conftest import SidesMaker
from tests.parity.sides import Ours, Sides, Vectors, require_equal

SOME = ("", "a", *texts.ORDINARY, "[SEP]", "<pad>", "a[PAD]b<pad>c", "你好", "hello " * 300)


def alone(ours: Ours, some: tuple[str, ...]) -> Vectors:
    """Ask for each text in a request of its own."""
    return np.concatenate([ours.vectors([text]) for text in some])


def require_own_vectors(ours: Ours) -> None:
    """Compare each text alone with itself in shuffled requests and beside the longest and the shortest neighbour."""
    expected = alone(ours, SOME)
    draw = random.Random(7)
    for _ in range(3):
        order = draw.sample(range(len(SOME)), len(SOME))
        given = ours.vectors([SOME[place] for place in order])
        require_equal(given, expected[order], [SOME[place] for place in order])
    longest = texts.of_length(ours, ours.settings.model.max_length)
    for neighbour in (longest, ""):
        beside = np.concatenate([ours.vectors([neighbour, text])[1:] for text in SOME])
        require_equal(beside, expected, SOME)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_tiny_models(kind: Kind, pooling: Pooling, tiny_models: TinyModels, sides: SidesMaker) -> None:
    require_own_vectors(sides(tiny_models(kind, pooling=pooling)).ours)


def test_the_real_model(minilm: Sides) -> None:
    require_own_vectors(minilm.ours)


def test_the_multilingual_model_beside_its_longest_text(e5: Sides) -> None:
    some = SOME[:6]
    longest = texts.of_length(e5.ours, 512)

    given = e5.ours.vectors([*some, longest])

    require_equal(given[:-1], alone(e5.ours, some), some)
    require_equal(given[-1:], e5.oracle.vectors([longest]), [longest])


def test_many_equal_texts_get_equal_vectors(minilm: Sides) -> None:
    """huggingface/sentence-transformers#2312: a hundred of one text, in batches of other sizes."""
    given = minilm.ours.vectors(["test test"] * 100)

    require_equal(given, np.repeat(minilm.oracle.vectors(["test test"]), 100, axis=0), ["test test"] * 100)


@pytest.mark.parametrize("budget", [1, 7, 64, 100_000])
@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_the_batch_budget_changes_no_vector(
    target: str, budget: int, tiny_models: TinyModels, sides: SidesMaker
) -> None:
    directory = tiny_models("roberta", pooling="mean")
    model = sides(directory, PackOptions("-", target=target, max_batch_tokens=budget))

    assert model.ours.embedder.encoder.policy.max_tokens == budget
    require_equal(model.ours.vectors(SOME), model.oracle.vectors(SOME), SOME)


def test_requests_of_one_batch_are_embedded_together_and_told_apart(minilm: Sides) -> None:
    service = Service(minilm.ours.embedder, {"golden_cosine": 1.0}, capacity_tokens=1_000_000)
    parts = [["a rose"], list(texts.ORDINARY), [""]]
    jobs = [service.read({"instances": part}, {}, "") for part in parts]

    results = service.compute(jobs)

    for part, result in zip(parts, results, strict=True):
        assert not isinstance(result, Exception)
        require_equal(result.numpy(), minilm.oracle.vectors(part), part)
