"""How far vectors are from others, on vectors whose distances can be seen by eye."""

from __future__ import annotations

import math

import pytest
import torch

from archiver import drift
from archiver.drift import VectorDrift

ANGLES = (0, 10, 30, 70)  # no two pairs of them are equally far apart


def at(*degrees: float) -> torch.Tensor:
    """Return unit vectors of a plane: [vectors, 2] float32."""
    return torch.tensor([[math.cos(math.radians(angle)), math.sin(math.radians(angle))] for angle in degrees])


def test_equal_vectors_do_not_drift() -> None:
    found = drift.of_vectors(at(*ANGLES), at(*ANGLES))

    assert found.inputs == 4
    assert found.largest_difference == 0
    assert found.mean_cosine == pytest.approx(1, abs=1e-12)
    assert found.worst_cosine == pytest.approx(1, abs=1e-12)
    assert found.rank_correlation == pytest.approx(1, abs=1e-12)


def test_length_moves_numbers_but_no_cosine() -> None:
    found = drift.of_vectors(at(*ANGLES), 2 * at(*ANGLES))

    assert found.largest_difference == pytest.approx(1, abs=1e-7)
    assert (found.mean_cosine, found.worst_cosine) == pytest.approx((1, 1), abs=1e-12)


def test_the_worst_cosine_and_the_mean() -> None:
    """One of four vectors turned by 60 degrees, whose cosine is 0.5; its second number moves by sin(60)."""
    found = drift.of_vectors(at(*ANGLES), at(60, *ANGLES[1:]))

    assert found.worst_cosine == pytest.approx(0.5, abs=1e-6)
    assert found.mean_cosine == pytest.approx((0.5 + 3) / 4, abs=1e-6)
    assert found.largest_difference == pytest.approx(math.sin(math.radians(60)), abs=1e-6)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # Degrees between the first and second, first and third, second and third; then the ranks of each pair.
        ((0, 30, 50), (0, 50, 30), 0.5),  # 30 50 20 -> 50 30 20: 2 3 1 -> 3 2 1
        ((0, 30, 50), (0, 20, 80), 0.5),  # 30 50 20 -> 20 80 60: 2 3 1 -> 1 3 2
        ((0, 10, 40), (0, 30, 40), 0.5),  # 10 40 30 -> 30 40 10: 1 3 2 -> 2 3 1
        ((0, 10, 40), (0, 40, 10), -1.0),  # 10 40 30 -> 40 10 30: 1 3 2 -> 3 1 2
        ((0, 10, 40), (0, 50, 20), -1.0),  # 10 40 30 -> 50 20 30: 1 3 2 -> 3 1 2
        ((0, 10, 40), (0, 1, 70), 1.0),  # 10 40 30 -> 1 70 69: 1 3 2 both times
    ],
)
def test_spearmans_correlation_of_the_similarities(
    before: tuple[float, ...], after: tuple[float, ...], expected: float
) -> None:
    """Of three ranks that differ by d: 1 - 6 * sum(d^2) / (3 * (9 - 1))."""
    assert drift.of_vectors(at(*before), at(*after)).rank_correlation == pytest.approx(expected, abs=1e-9)


def test_what_is_not_finite_is_no_small_drift() -> None:
    found = drift.of_vectors(at(0, 20, 50), at(0, 20, math.nan))

    assert not found.largest_difference <= 1
    assert not found.worst_cosine > 0


def test_plain_numbers_for_people() -> None:
    found = VectorDrift(27, "float32", 8.940696716308594e-08, 0.9999999999999938, 0.99412345678, 0.98765432109)

    assert found.to_mapping() == {
        "dtype": "float32",
        "inputs": 27,
        "largest_difference": 8.9407e-08,
        "mean_cosine": 1.0,
        "worst_cosine": 0.994123,
        "rank_correlation": 0.987654,
    }
