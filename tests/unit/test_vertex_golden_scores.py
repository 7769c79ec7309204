"""What passes for an archive's golden scores, and what is said of what does not."""

from __future__ import annotations

import numpy as np
import pytest

from vertex.errors import OperationError
from vertex.golden_scores import GoldenScores

LABELS = ("Negative", "Positive")
SCORES = np.array([[0.25, 0.75], [0.875, 0.125]], dtype=np.float32)
GOLDEN = GoldenScores(["", "a rose"], LABELS, SCORES, regression=False, most_difference=1e-3)
NUMBER = GoldenScores(["", "a rose"], ("stars",), SCORES[:, :1] * 16, regression=True, most_difference=1e-3)
NUMBERS = GoldenScores(["", "a rose"], ("b", "a"), SCORES * 16, regression=True, most_difference=1e-3)


def answers(*rows: tuple[float, float], labels: tuple[str, ...] = LABELS) -> list[object]:
    """Return predictions with scores "all": the best label first."""
    return [
        [{"label": label, "score": score} for score, label in sorted(zip(row, labels, strict=True), reverse=True)]
        for row in rows
    ]


def test_all_scores_of_the_texts_are_asked() -> None:
    assert GOLDEN.instances == ["", "a rose"]
    assert GOLDEN.parameters == {"scores": "all", "output": "score"}


def test_scores_are_compared_by_their_labels() -> None:
    assert GOLDEN.require(answers((0.25, 0.75), (0.875, 0.125))) == 0
    assert GOLDEN.require(answers((0.2505, 0.7495), (0.875, 0.125))) == pytest.approx(5e-4)


def test_outputs_that_share_a_label_are_compared_by_their_scores() -> None:
    labels = ("same", "same")
    golden = GoldenScores(["", "a rose"], labels, SCORES, regression=False, most_difference=1e-3)
    assert golden.require(answers((0.25, 0.75), (0.875, 0.125), labels=labels)) == 0
    with pytest.raises(OperationError, match=r"^the largest difference to the golden scores is 0\.125000, "):
        golden.require(answers((0.125, 0.75), (0.875, 0.125), labels=labels))


@pytest.mark.parametrize(
    ("predictions", "reason"),
    [
        (
            answers((0.25, 0.75), (0.75, 0.25)),
            "the largest difference to the golden scores is 0.125000, allowed is 0.001",
        ),
        (
            answers((0.75, 0.25), (0.875, 0.125)),
            "the largest difference to the golden scores is 0.500000, allowed is 0.001",
        ),
        (
            answers((np.nan, 0.75), (0.875, 0.125)),
            "the largest difference to the golden scores is nan, allowed is 0.001",
        ),
        (
            answers((0.25, 0.75), (0.875, 0.125), labels=("LABEL_0", "LABEL_1")),
            "the archive has the labels Negative, Positive, the endpoint LABEL_0, LABEL_1",
        ),
        (
            [[{"label": "Positive", "score": 0.75}], [{"label": "Negative", "score": 0.875}]],
            "the archive has the labels Negative, Positive, the endpoint Positive",
        ),
        (answers((0.25, 0.75)), "2 golden texts, and 1 predictions of the endpoint"),
        (
            ["Positive", "Negative"],
            "the endpoint's predictions are no scores (expected a list, got str): is it a model of marvec's?",
        ),
        (
            [["Positive", "Negative"]] * 2,
            "the endpoint's predictions are no scores (expected an object with label and score, got str): is it a "
            "model of marvec's?",
        ),
        (
            [[{"label": "Positive"}]] * 2,
            "the endpoint's predictions are no scores ('score'): is it a model of marvec's?",
        ),
    ],
)
def test_other_scores_do_not_pass(predictions: list[object], reason: str) -> None:
    with pytest.raises(OperationError) as caught:
        GOLDEN.require(predictions)
    assert str(caught.value) == reason


def test_a_regressions_numbers_may_differ_in_parts_of_them() -> None:
    assert NUMBER.require([4.0, 14.0]) == 0
    assert NUMBER.require([4.002, 14.0]) == pytest.approx(5e-4)
    assert NUMBERS.require([[4.0, 12.0], [14.0, 2.0]]) == 0
    with pytest.raises(OperationError, match=r"^the largest difference to the golden scores is 2\.000000, "):
        NUMBERS.require([[12.0, 4.0], [14.0, 2.0]])


@pytest.mark.parametrize(
    ("golden", "prediction", "reason"),
    [
        (NUMBER, {"label": "stars", "score": 4.0}, "expected a number"),
        (NUMBER, [4.0, 4.0], "expected a number"),
        (NUMBERS, 4.0, "expected 2 numbers"),
        (NUMBERS, [4.0, "x"], "expected 2 numbers"),
    ],
)
def test_what_is_no_regressions_answer(golden: GoldenScores, prediction: object, reason: str) -> None:
    with pytest.raises(OperationError) as caught:
        golden.require([prediction, prediction])
    assert str(caught.value) == (f"the endpoint's predictions are no scores ({reason}): is it a model of marvec's?")
