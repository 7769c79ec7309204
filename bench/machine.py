"""Where a measurement was made: without it a figure says nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

# Those that decide how fast matrices are multiplied.
FLAGS = ("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_bf16", "amx_int8")


@dataclass(frozen=True)
class Machine:
    """A machine and the state of the code on it.

    Attributes:
        cpu: The processor's name.
        cpu_flags: Those of FLAGS that it has.
        cores: Cores that this process may run on.
        memory_bytes: The machine's memory.
        system: Kernel and architecture.
        python: Its version.
        commit: The repository's commit, with "+" where files differ from it.
    """

    cpu: str
    cpu_flags: list[str]
    cores: int
    memory_bytes: int
    system: str
    python: str
    commit: str


def read() -> Machine:
    """Look at this machine."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in info.splitlines())}
    flags = fields.get("flags", "").split()
    return Machine(
        cpu=fields.get("model name", platform.machine()),
        cpu_flags=[flag for flag in FLAGS if flag in flags],
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        commit=_commit(),
    )


def _commit() -> str:
    root = Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain") else "")
