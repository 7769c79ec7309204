"""How near an archive's answers are to those that were recorded when it was packed, and how near they must be."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from marvec.errors import SelfTestError
from marvec.settings import ClassificationSettings, Settings

LEAST_COSINE = {"float32": 0.9999, "float16": 0.99, "bfloat16": 0.98, "auto": 0.98, "int8": 0.95}
# Of a score; of a regression's number, in parts of it where it is over 1.
MOST_DIFFERENCE = {"float32": 1e-3, "float16": 0.02, "bfloat16": 0.1, "auto": 0.1, "int8": 0.25}


def differences(recorded: Tensor, answers: Tensor) -> Tensor:
    """How far scores are apart; numbers over 1, which a regression may give, in parts of themselves.

    Args:
        recorded: [inputs, labels] float32.
        answers: [inputs, labels] float32, to the same inputs.

    Returns:
        [inputs, labels] float32.
    """
    return (answers - recorded).abs() / recorded.abs().clamp_min(1)


def require(settings: Settings, recorded: Tensor, answers: Tensor, dtype: str) -> dict[str, float]:
    """Compare vectors by their cosine, scores by their difference.

    Args:
        settings: For the task.
        recorded: [inputs, numbers] float32.
        answers: [inputs, numbers] float32, to the same inputs.
        dtype: What the answers were computed in.

    Returns:
        The figure that was compared, with its name.

    Raises:
        SelfTestError: When the answers are not finite, of another shape, or too far away.
    """
    if not torch.isfinite(answers).all():
        raise SelfTestError("a golden text's answer has a number that is not finite")
    if recorded.shape != answers.shape:
        raise SelfTestError(f"answers have shape {list(answers.shape)}, the recorded ones {list(recorded.shape)}")
    if settings.task == ClassificationSettings.task:
        difference = float(differences(recorded, answers).max())
        if not difference <= MOST_DIFFERENCE[dtype]:
            raise SelfTestError(
                f"largest difference to the golden scores is {difference:.6f}, allowed is {MOST_DIFFERENCE[dtype]}"
            )
        return {"golden_difference": difference}
    cosine = float(cosine_similarity(answers, recorded).min())
    if not cosine >= LEAST_COSINE[dtype]:  # a NaN is neither
        raise SelfTestError(
            f"smallest cosine to the golden vectors is {cosine:.6f}, allowed is {LEAST_COSINE[dtype]} and above"
        )
    return {"golden_cosine": cosine}
