"""Rows of inputs as the rectangles of numbers that an exported graph takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marvec.batching import width

if TYPE_CHECKING:
    from marvec.encoder import Rows


def lay_out(rows: Rows) -> dict[str, NDArray[np.int64]]:
    """Lay inputs out in their rows.

    Returns:
        `input_ids`; `position_ids`, from 0 in each input; `segments`, from 1 in each row and 0 where no token is; and
        `attention_mask`, which is the same for rows of one input: [rows, length] int64 each.
    """
    shape = (len(rows), width(max(sum(map(len, row)) for row in rows)))
    ids, positions, segments = (np.zeros(shape, np.int64) for _ in range(3))
    for i, row in enumerate(rows):
        end = 0
        for segment, item in enumerate(row, start=1):
            start, end = end, end + len(item)
            ids[i, start:end] = item
            positions[i, start:end] = np.arange(len(item))
            segments[i, start:end] = segment
    return {"input_ids": ids, "position_ids": positions, "segments": segments, "attention_mask": segments}
