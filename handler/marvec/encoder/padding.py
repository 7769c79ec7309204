"""Inputs of unlike length as one rectangle of token ids, for encoders that take a row for each input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from marvec.batching import Policy

_CPU_BATCH_TOKENS = 1024
_CUDA_BATCH_TOKENS = 16384


def policy(device: str, max_batch_tokens: int | None) -> Policy:
    """The passes that such an encoder likes.

    Args:
        device: "cpu" or "cuda:N".
        max_batch_tokens: Tokens in one pass; None for what suits the device.
    """
    budget = _CUDA_BATCH_TOKENS if device.startswith("cuda") else _CPU_BATCH_TOKENS
    return Policy(max_batch_tokens or budget)


def pad(batch: Sequence[Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """Fill all inputs up to the longest.

    Args:
        batch: Token ids; none is empty.
        pad_id: What to fill up with.

    Returns:
        The ids [inputs, length] int64, and where they are tokens of an input [inputs, length] bool.
    """
    lengths = np.fromiter((len(ids) for ids in batch), np.int64, len(batch))
    real = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full(real.shape, pad_id, np.int64)
    padded[real] = np.concatenate([np.asarray(ids, np.int64) for ids in batch])
    return torch.from_numpy(padded), torch.from_numpy(real)
