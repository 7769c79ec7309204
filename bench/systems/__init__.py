"""The contestants. Each is a System; `chosen` finds them by name."""

from __future__ import annotations

from collections.abc import Sequence

from bench.systems.fastapi import FastApi
from bench.systems.infinity import Infinity
from bench.systems.marvec import Marvec
from bench.systems.system import System

ALL: tuple[System, ...] = (
    Marvec("marvec-float32", "Marvec, float32"),
    Marvec("marvec-bfloat16", "Marvec, bfloat16", dtype="bfloat16"),
    Marvec("marvec-int8", "Marvec, int8", dtype="int8"),
    FastApi("fastapi", "FastAPI + sentence-transformers", "fastapi"),
    Infinity("infinity-torch", "infinity, torch", "infinity"),
)
QUICK = ("marvec-float32", "fastapi", "infinity-torch")
BASELINE = "fastapi"  # what ratios refer to: the service that a user would write in ten minutes


def chosen(names: Sequence[str]) -> list[System]:
    """The systems of some names, in the order of the names.

    Raises:
        ValueError: A name is none of a system.
    """
    by_name = {system.name: system for system in ALL}
    for name in names:
        if name not in by_name:
            raise ValueError(f"system {name!r} is unknown; the known ones are {', '.join(by_name)}")
    return [by_name[name] for name in names]
