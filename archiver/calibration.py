"""The user's texts that int8 is fitted to, and those that are held out to measure what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from archiver.errors import PackError

_LEAST_TEXTS = 32
_MOST_TEXTS = 640  # more of them change the ranges no further
_HELD_OUT_EVERY = 5


@dataclass(frozen=True)
class Calibration:
    """Texts of the kind that will be embedded, no two of them the same.

    Attributes:
        fitted: Those that the ranges of activations are taken from.
        held_out: Those that only measure.
    """

    fitted: tuple[str, ...]
    held_out: tuple[str, ...]


def read(file: Path) -> Calibration:
    """Read a file of one text a line; of very many, some from everywhere in it.

    Raises:
        PackError: When it cannot be read, is not UTF-8, or has too few texts.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as err:
        raise PackError(f"--calibration: {file} is not UTF-8: {err.reason} at byte {err.start}") from err
    except OSError as err:
        raise PackError(f"--calibration: {file}: {err.strerror}") from err
    texts = list(dict.fromkeys(line.removesuffix("\r") for line in lines if line.strip()))
    if len(texts) < _LEAST_TEXTS:
        raise PackError(
            f"--calibration: {file} has {len(texts)} different texts, expected are at least {_LEAST_TEXTS}, one a "
            "line; some hundreds of the kind that will be embedded are best"
        )
    count = min(len(texts), _MOST_TEXTS)
    chosen = [texts[i * len(texts) // count] for i in range(count)]
    held_out = chosen[_HELD_OUT_EVERY - 1 :: _HELD_OUT_EVERY]
    del chosen[_HELD_OUT_EVERY - 1 :: _HELD_OUT_EVERY]
    return Calibration(tuple(chosen), tuple(held_out))
