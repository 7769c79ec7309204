"""Logits -> scores: pure float32 functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def scores(logits: Tensor, problem_type: str) -> Tensor:
    """Score each label, as transformers' text-classification pipeline does.

    Args:
        logits: [inputs, labels] float32.
        problem_type: One of settings.PROBLEM_TYPES.

    Returns:
        [inputs, labels] float32: a softmax where one label is right, sigmoids where several may be; of a regression
        the logits themselves.

    Raises:
        ValueError: For another problem type.
    """
    if problem_type == "single_label_classification":
        return logits.softmax(dim=1)
    if problem_type == "multi_label_classification":
        return logits.sigmoid()
    if problem_type == "regression":
        return logits
    raise ValueError(f"unknown problem type {problem_type!r}")
