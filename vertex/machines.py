"""Machine types of Vertex AI's online prediction, what goes into them, and when a replica is full.

After Google's page "Configure compute resources for inference". Which regions have which is not checked: that changes
by the week, and the refusal names it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from vertex.errors import VertexError

_N1 = (2, 4, 8, 16, 32)
# Accelerator -> machine -> counts. Only N1 machines let one choose.
CHOSEN: Mapping[str, Mapping[int, tuple[int, ...]]] = MappingProxyType(
    {
        "NVIDIA_TESLA_T4": {2: (1, 2, 4), 4: (1, 2, 4), 8: (1, 2, 4), 16: (1, 2, 4), 32: (2, 4)},
        "NVIDIA_TESLA_P4": {2: (1, 2, 4), 4: (1, 2, 4), 8: (1, 2, 4), 16: (1, 2, 4), 32: (2, 4)},
        "NVIDIA_TESLA_P100": {2: (1, 2, 4), 4: (1, 2, 4), 8: (1, 2, 4), 16: (1, 2, 4), 32: (2, 4)},
        "NVIDIA_TESLA_V100": {2: (1, 2, 4, 8), 4: (1, 2, 4, 8), 8: (1, 2, 4, 8), 16: (2, 4, 8), 32: (4, 8)},
    }
)
# Machine -> the accelerator and the count that it comes with.
FIXED: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        **{f"g2-standard-{size}": ("NVIDIA_L4", 1) for size in (4, 8, 12, 16, 32)},
        "g2-standard-24": ("NVIDIA_L4", 2),
        "g2-standard-48": ("NVIDIA_L4", 4),
        "g2-standard-96": ("NVIDIA_L4", 8),
        **{f"a2-highgpu-{count}g": ("NVIDIA_TESLA_A100", count) for count in (1, 2, 4, 8)},
        "a2-megagpu-16g": ("NVIDIA_TESLA_A100", 16),
        **{f"a2-ultragpu-{count}g": ("NVIDIA_A100_80GB", count) for count in (1, 2, 4, 8)},
        **{f"a3-highgpu-{count}g": ("NVIDIA_H100_80GB", count) for count in (1, 2, 4, 8)},
        "a3-megagpu-8g": ("NVIDIA_H100_MEGA_80GB", 8),
        "a3-ultragpu-8g": ("NVIDIA_H200_141GB", 8),
    }
)
_CPU = re.compile(
    r"(n1|n2|n2d|e2)-(standard|highmem|highcpu)-\d+|(c2|c2d)-(standard|highmem|highcpu)-\d+|c3-highcpu-\d+"
)
_N1_NAME = re.compile(r"n1-(standard|highmem|highcpu)-(\d+)")
# A replica's cores are full at this share; a new one takes minutes to come, and the old ones must last that long.
_FULL_PER_CENT = 80
# What the platform keeps of each replica for itself.
_PLATFORM_CORES = 1
_DUTY_CYCLE_PER_CENT = 60


def check(machine: str, accelerator: str | None, count: int | None) -> None:
    """Refuse what Vertex AI would refuse after minutes.

    Args:
        machine: A machine type, such as n1-standard-4.
        accelerator: An accelerator's name in Vertex AI's own words, such as NVIDIA_TESLA_T4; None for none.
        count: How many; None for as many as the machine comes with, or one.

    Raises:
        VertexError: With what is allowed.
    """
    if machine in FIXED:
        _check_fixed(machine, accelerator, count)
    elif not _CPU.fullmatch(machine) or (_N1_NAME.fullmatch(machine) and _size(machine) not in _N1):
        sizes = "n1-standard-2, -4, -8, -16 or -32; n1-highmem and -highcpu likewise; n2, n2d, e2, c2, c2d, c3"
        raise VertexError(f"machine {machine!r} is unknown; known: {sizes}; with accelerators: {', '.join(FIXED)}")
    elif accelerator is not None:
        _check_chosen(machine, accelerator, 1 if count is None else count)
    elif count is not None:
        raise VertexError(f"accelerator_count {count} without an accelerator: name one, or leave the count out")


def settled(machine: str, accelerator: str | None, count: int | None) -> tuple[str, int] | None:
    """The accelerator and the count to ask for; the API wants both even where the machine leaves no choice.

    Args:
        machine: As `check` takes it, and checked.
        accelerator: Likewise.
        count: Likewise.
    """
    if machine in FIXED:
        return FIXED[machine]
    return None if accelerator is None else (accelerator, 1 if count is None else count)


def full_at_per_cent(machine: str, accelerator: str | None) -> tuple[str, int]:
    """The metric that shows a full replica, and the target at which another one should come.

    The CPU's share is of all cores of the machine, of which the platform keeps one: with Google's default of 60 % a
    full replica of two cores would never be seen as full.

    Args:
        machine: As `check` takes it, and checked.
        accelerator: Likewise.

    Returns:
        `cpu` or `duty_cycle`, and per cent.
    """
    if machine in FIXED or accelerator is not None:
        return "duty_cycle", _DUTY_CYCLE_PER_CENT
    cores = _size(machine)
    usable = max(1, cores - _PLATFORM_CORES)
    return "cpu", _FULL_PER_CENT * usable // cores


def _check_fixed(machine: str, accelerator: str | None, count: int | None) -> None:
    name, number = FIXED[machine]
    if accelerator not in (None, name) or count not in (None, number):
        asked = f"{count or 1} x {accelerator or name}"
        raise VertexError(f"{machine} comes with {number} x {name}, not with {asked}: leave both out, or name these")


def _check_chosen(machine: str, accelerator: str, count: int) -> None:
    if accelerator not in CHOSEN:
        others = ", ".join(sorted({name for name, _ in FIXED.values()}))
        raise VertexError(
            f"accelerator {accelerator!r} is unknown on {machine}; n1 machines take {', '.join(CHOSEN)}; machines of "
            f"their own have {others}"
        )
    if not _N1_NAME.fullmatch(machine):
        raise VertexError(f"{machine} takes no accelerator: only n1 machines let one choose, such as n1-standard-4")
    allowed = CHOSEN[accelerator][_size(machine)]
    if count not in allowed:
        counts = ", ".join(map(str, allowed))
        raise VertexError(f"{machine} does not take {count} x {accelerator}; allowed counts: {counts}")


def _size(machine: str) -> int:
    return int(machine.rsplit("-", 1)[-1])
