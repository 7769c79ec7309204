"""What passes for an archive's golden vectors, and what is said of what does not."""

from __future__ import annotations

import numpy as np
import pytest

from vertex.errors import OperationError
from vertex.golden_vectors import GoldenVectors

VECTORS = np.array([[1, 0, 0], [0.6, 0.8, 0]], dtype=np.float32)
GOLDEN = GoldenVectors(["", "a rose"], [2, 4], VECTORS, normalized=True, least_cosine=0.9999)


def answers(vectors: object, counts: tuple[float, ...] = (2.0, 4.0)) -> list[object]:
    """Return predictions as the SDK gives them: every number is a double."""
    rows = np.array(vectors, dtype=np.float64).tolist()
    return [
        {"embeddings": {"values": row, "statistics": {"token_count": count, "truncated": False}}}
        for row, count in zip(rows, counts, strict=True)
    ]


def test_the_texts_are_asked_without_a_prompt() -> None:
    assert GOLDEN.instances == [{"content": ""}, {"content": "a rose"}]
    assert GOLDEN.parameters == {"promptName": ""}


def test_the_same_vectors_pass() -> None:
    assert GOLDEN.require(answers(VECTORS)) == pytest.approx(1.0)
    turned = [[1, 1e-3, 0], [0.6, 0.8, 1e-3]]
    assert 0.9999 < GOLDEN.require(answers(turned)) < 1


@pytest.mark.parametrize(
    ("predictions", "reason"),
    [
        (
            answers([[1, 0, 0], [0.8, 0.6, 0]]),
            "the smallest cosine to the golden vectors is 0.960000, allowed is 0.9999 and above",
        ),
        (answers(VECTORS, (2.0, 5.0)), "the golden texts have [2, 4] tokens, and the endpoint says [2, 5]"),
        (answers(VECTORS[:, :2]), "the golden vectors have the shape [2, 3], the endpoint's [2, 2]"),
        (answers(VECTORS * 2), "vectors have lengths from 2.0000 to 2.0000: expected 1"),
        (answers(VECTORS * np.nan), "vectors have lengths from nan to nan: expected 1"),
        (
            [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]],
            "the endpoint's predictions are no embeddings (expected an object, got list): is it a model of marvec's?",
        ),
        (
            [{"label": "good"}, {}],
            "the endpoint's predictions are no embeddings ('embeddings'): is it a model of marvec's?",
        ),
        ([], "the golden texts have [2, 4] tokens, and the endpoint says []"),
    ],
)
def test_other_vectors_do_not(predictions: list[object], reason: str) -> None:
    with pytest.raises(OperationError) as caught:
        GOLDEN.require(predictions)
    assert str(caught.value) == reason


def test_vectors_without_unit_length_may_have_any() -> None:
    golden = GoldenVectors(["", "a rose"], [2, 4], VECTORS * 3, normalized=False, least_cosine=0.98)
    assert golden.require(answers(VECTORS * 3)) == pytest.approx(1.0)
