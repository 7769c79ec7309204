"""The contestants. Each is a System; `find` finds one by its name."""

from __future__ import annotations

from bench.systems.blog import Blog
from bench.systems.fastapi import FastApi, FastApiOpenVino
from bench.systems.infinity import Infinity, InfinityOnnx
from bench.systems.marvec import Marvec
from bench.systems.system import System

ALL: tuple[System, ...] = (
    Marvec("marvec-float32", "Marvec, float32"),
    Marvec("marvec-bfloat16", "Marvec, bfloat16", dtype="bfloat16"),
    Marvec("marvec-int8", "Marvec, int8", dtype="int8"),
    FastApi("fastapi", "FastAPI + sentence-transformers", "fastapi"),
    FastApiOpenVino("fastapi-openvino", "FastAPI + sentence-transformers, OpenVINO", "fastapi-openvino"),
    Infinity("infinity-torch", "infinity, torch", "infinity-torch"),
    InfinityOnnx("infinity-onnx", "infinity, ONNX Runtime", "infinity-onnx"),
    Blog("torchserve-blog", "TorchServe, handler of the blogs"),
)
QUICK = ("marvec-float32", "fastapi", "infinity-torch")
BASELINE = "fastapi"  # what ratios refer to: the service that a user would write in ten minutes


OWN = tuple(system for system in ALL if isinstance(system, Marvec))


def find(name: str) -> System:
    """The system of a name.

    Raises:
        ValueError: There is none.
    """
    by_name = {system.name: system for system in ALL}
    if name not in by_name:
        raise ValueError(f"system {name!r} is unknown; the known ones are {', '.join(by_name)}")
    return by_name[name]


def find_own(name: str) -> Marvec:
    """The Marvec of a name.

    Raises:
        ValueError: There is none.
    """
    by_name = {system.name: system for system in OWN}
    if name not in by_name:
        raise ValueError(f"system {name!r} is no Marvec; those are {', '.join(by_name)}")
    return by_name[name]
