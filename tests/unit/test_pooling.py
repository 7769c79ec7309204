"""Pooling by hand-computed values, and beside neighbours of every length."""

from __future__ import annotations

import math

import pytest
import torch

from marvec.pooling import finish, pool
from marvec.settings import POOLING_MODES

HIDDEN = torch.tensor([[1.0, 4.0], [3.0, -2.0], [5.0, 1.0], [7.0, 7.0]])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("cls", [[1.0, 4.0], [7.0, 7.0]]),
        ("lasttoken", [[5.0, 1.0], [7.0, 7.0]]),
        ("max", [[5.0, 4.0], [7.0, 7.0]]),
        ("mean", [[3.0, 1.0], [7.0, 7.0]]),
        ("mean_sqrt_len_tokens", [[9 / math.sqrt(3), 3 / math.sqrt(3)], [7.0, 7.0]]),
        ("weightedmean", [[(1 + 6 + 15) / 6, (4 - 4 + 3) / 6], [7.0, 7.0]]),
    ],
)
def test_each_mode(mode: str, expected: list[list[float]]) -> None:
    torch.testing.assert_close(pool(HIDDEN, [3, 1], [mode]), torch.tensor(expected))


def test_modes_are_concatenated_in_order() -> None:
    assert pool(HIDDEN, [4], ["lasttoken", "cls"]).tolist() == [[7.0, 7.0, 1.0, 4.0]]


@pytest.mark.parametrize("mode", POOLING_MODES)
def test_neighbours_do_not_matter(mode: str) -> None:
    generator = torch.Generator().manual_seed(0)
    texts = [torch.randn(length, 16, generator=generator) for length in (1, 257, 3, 64)]
    together = pool(torch.cat(texts), [len(text) for text in texts], [mode])
    for row, text in zip(together, texts):
        torch.testing.assert_close(row, pool(text, [len(text)], [mode])[0], rtol=0, atol=1e-6)


def test_half_precision_is_pooled_in_float32() -> None:
    hidden = torch.full((4096, 1), 20.0, dtype=torch.float16)  # the sum is beyond float16
    pooled = pool(hidden, [4096], ["mean"])
    assert pooled.dtype == torch.float32
    assert pooled.item() == 20.0


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown pooling mode 'sum'"):
        pool(HIDDEN, [4], ["sum"])


def test_a_text_without_tokens_is_refused_not_given_its_neighbours_vector() -> None:
    with pytest.raises(ValueError, match="a text without tokens has no vector"):
        pool(HIDDEN, [0, 4], ["lasttoken"])


def test_finish_truncates_then_normalizes() -> None:
    vectors = torch.tensor([[3.0, 4.0, 12.0]])
    torch.testing.assert_close(finish(vectors, 2, normalize=True), torch.tensor([[0.6, 0.8]]))
    assert finish(vectors, 2, normalize=False).tolist() == [[3.0, 4.0]]
    assert vectors.tolist() == [[3.0, 4.0, 12.0]]
    assert finish(vectors, 2, normalize=True).is_contiguous()


def test_a_zero_vector_stays_zero() -> None:
    assert finish(torch.zeros(1, 3), 3, normalize=True).tolist() == [[0.0, 0.0, 0.0]]
