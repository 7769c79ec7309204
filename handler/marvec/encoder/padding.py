"""Inputs of unlike length as one rectangle of token ids, for encoders that take a row for each input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from marvec.batching import Policy
from marvec.tokens import Tokens

_CPU_BATCH_TOKENS = 1024
_CUDA_BATCH_TOKENS = 16384


def policy(device: str, max_batch_tokens: int | None, hidden: int) -> Policy:
    """The passes that such an encoder likes.

    Args:
        device: "cpu" or "cuda:N".
        max_batch_tokens: Tokens in one pass; None for what suits the device.
        hidden: Its hidden size.
    """
    budget = _CUDA_BATCH_TOKENS if device.startswith("cuda") else _CPU_BATCH_TOKENS
    return Policy(max_batch_tokens or budget, hidden=hidden)


def pad(batch: Sequence[Tokens], pad_id: int) -> tuple[Tensor, Tensor, Tensor]:
    """Fill all inputs up to the longest.

    Args:
        batch: Inputs; none is empty.
        pad_id: What to fill up with.

    Returns:
        The ids [inputs, length] int64, where they are tokens of an input [inputs, length] bool, and the token type ids
        [inputs, length] int64.
    """
    lengths = np.fromiter((len(item.ids) for item in batch), np.int64, len(batch))
    real = np.arange(lengths.max()) < lengths[:, None]
    ids, types = np.full(real.shape, pad_id, np.int64), np.zeros(real.shape, np.int64)
    ids[real] = np.concatenate([np.asarray(item.ids, np.int64) for item in batch])
    for row, item in zip(types, batch):
        if item.type_ids is not None:
            row[: len(item.type_ids)] = item.type_ids
    return torch.from_numpy(ids), torch.from_numpy(real), torch.from_numpy(types)
