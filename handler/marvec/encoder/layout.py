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
        `input_ids`; `position_ids`, from 0 in each input; `segments`, from 1 in each row and 0 where no token is;
        `attention_mask`, which is the same for rows of one input; and `token_type_ids`: [rows, length] int64 each.
    """
    shape = (len(rows), width(max(sum(len(item.ids) for item in row) for row in rows)))
    ids, positions, segments, types = (np.zeros(shape, np.int64) for _ in range(4))
    for i, row in enumerate(rows):
        end = 0
        for segment, item in enumerate(row, start=1):
            start, end = end, end + len(item.ids)
            ids[i, start:end] = item.ids
            positions[i, start:end] = np.arange(len(item.ids))
            segments[i, start:end] = segment
            if item.type_ids is not None:
                types[i, start:end] = item.type_ids
    return {
        "input_ids": ids,
        "position_ids": positions,
        "segments": segments,
        "attention_mask": segments,
        "token_type_ids": types,
    }


def places(rows: Rows, segments: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the tokens of each input stand among those of all rows, for what is computed of an input alone.

    Args:
        rows: As laid out.
        segments: As `lay_out` gives them.

    Returns:
        [inputs, length] int64: places in the rows one after another, and -1 behind an input's end.
    """
    lengths = np.fromiter((len(item.ids) for row in rows for item in row), np.int64)
    real = np.arange(width(int(lengths.max()))) < lengths[:, None]
    found = np.full(real.shape, -1, np.int64)
    found[real] = np.flatnonzero(segments)
    return found
