"""Hidden states -> sentence vectors: pure float32 functions.

Hidden states come without padding: the tokens of all texts one after another, so no mask can be forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_SMALLEST_NORM = 1e-12  # as torch.nn.functional.normalize: a zero vector stays zero, not NaN


def pool(hidden: Tensor, counts: Sequence[int], modes: Sequence[str]) -> Tensor:
    """Reduce the tokens of each text to one vector.

    Args:
        hidden: [tokens, hidden] any float dtype, the texts one after another.
        counts: Tokens of each text, each at least 1; they add up to `tokens`.
        modes: Pooling modes (settings.POOLING_MODES); the results of several are concatenated.

    Returns:
        [texts, hidden * modes] float32.

    Raises:
        ValueError: When a text has no tokens.
    """
    if min(counts, default=1) < 1:
        raise ValueError("a text without tokens has no vector")
    hidden = hidden.float()
    lengths = torch.tensor(counts, device=hidden.device)
    return torch.cat([_pool_one(hidden, lengths, mode) for mode in modes], dim=1)


def _pool_one(hidden: Tensor, lengths: Tensor, mode: str) -> Tensor:
    ends = lengths.cumsum(0)
    if mode == "cls":
        return hidden[ends - lengths]
    if mode == "lasttoken":
        return hidden[ends - 1]
    if mode == "max":
        return torch.segment_reduce(hidden, "max", lengths=lengths)
    if mode == "mean":
        return torch.segment_reduce(hidden, "sum", lengths=lengths) / lengths[:, None]
    if mode == "mean_sqrt_len_tokens":
        return torch.segment_reduce(hidden, "sum", lengths=lengths) / lengths[:, None].sqrt()
    if mode == "weightedmean":  # SGPT (arXiv:2202.08904): the n-th token weighs n
        weights = torch.arange(1, len(hidden) + 1, device=hidden.device) - (ends - lengths).repeat_interleave(lengths)
        total = (lengths * (lengths + 1) / 2)[:, None]
        return torch.segment_reduce(hidden * weights[:, None], "sum", lengths=lengths) / total
    raise ValueError(f"unknown pooling mode {mode!r}")


def finish(vectors: Tensor, dimension: int, normalize: bool) -> Tensor:
    """Truncate vectors (Matryoshka, arXiv:2205.13147), then give them unit length.

    Args:
        vectors: [texts, full dimension] float32.
        dimension: Numbers to keep, at most the full dimension.
        normalize: Whether to divide each vector by its Euclidean norm.

    Returns:
        [texts, dimension] float32, contiguous.
    """
    kept = vectors[:, :dimension]
    if normalize:
        kept = kept / kept.norm(dim=1, keepdim=True).clamp_min(_SMALLEST_NORM)
    return kept.contiguous()
