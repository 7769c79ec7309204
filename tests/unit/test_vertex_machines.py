"""Which machine takes which accelerator, and the load at which a replica is full."""

from __future__ import annotations

import pytest

from vertex.errors import VertexError
from vertex.machines import check, full_at_per_cent, settled


@pytest.mark.parametrize(
    ("machine", "accelerator", "count"),
    [
        ("n1-standard-2", None, None),
        ("n1-highmem-32", None, None),
        ("c3-highcpu-22", None, None),
        ("n1-standard-4", "NVIDIA_TESLA_T4", None),
        ("n1-standard-32", "NVIDIA_TESLA_V100", 8),
        ("n1-standard-8", "NVIDIA_TESLA_P100", 4),
        ("g2-standard-4", None, None),
        ("g2-standard-24", "NVIDIA_L4", 2),
        ("a2-megagpu-16g", "NVIDIA_TESLA_A100", 16),
        ("a3-highgpu-8g", None, 8),
    ],
)
def test_what_there_is(machine: str, accelerator: str | None, count: int | None) -> None:
    check(machine, accelerator, count)


@pytest.mark.parametrize(
    ("machine", "accelerator", "count", "reason"),
    [
        ("n1-standard-3", None, None, "machine 'n1-standard-3' is unknown; known: n1-standard-2, -4, -8, -16 or -32"),
        ("m7-large", None, None, "machine 'm7-large' is unknown"),
        (
            "n1-standard-32",
            "NVIDIA_TESLA_T4",
            1,
            "n1-standard-32 does not take 1 x NVIDIA_TESLA_T4; allowed counts: 2, 4",
        ),
        ("n1-standard-16", "NVIDIA_TESLA_V100", None, "does not take 1 x NVIDIA_TESLA_V100; allowed counts: 2, 4, 8"),
        ("n1-standard-4", "NVIDIA_L4", 1, "accelerator 'NVIDIA_L4' is unknown on n1-standard-4; n1 machines take"),
        ("e2-standard-4", "NVIDIA_TESLA_T4", 1, "e2-standard-4 takes no accelerator: only n1 machines let one choose"),
        ("n1-standard-4", None, 1, "accelerator_count 1 without an accelerator: name one, or leave the count out"),
        (
            "g2-standard-4",
            "NVIDIA_TESLA_T4",
            1,
            "g2-standard-4 comes with 1 x NVIDIA_L4, not with 1 x NVIDIA_TESLA_T4: leave both out, or name these",
        ),
        ("g2-standard-24", None, 4, "g2-standard-24 comes with 2 x NVIDIA_L4, not with 4 x NVIDIA_L4"),
    ],
)
def test_what_there_is_not(machine: str, accelerator: str | None, count: int | None, reason: str) -> None:
    with pytest.raises(VertexError) as caught:
        check(machine, accelerator, count)
    assert str(caught.value).startswith(reason) or reason in str(caught.value)


@pytest.mark.parametrize(
    ("machine", "accelerator", "count", "asked"),
    [
        ("n1-standard-4", None, None, None),
        ("n1-standard-4", "NVIDIA_TESLA_T4", None, ("NVIDIA_TESLA_T4", 1)),
        ("n1-standard-4", "NVIDIA_TESLA_T4", 4, ("NVIDIA_TESLA_T4", 4)),
        ("g2-standard-96", None, None, ("NVIDIA_L4", 8)),
    ],
)
def test_what_the_api_is_asked_for(
    machine: str, accelerator: str | None, count: int | None, asked: tuple[str, int] | None
) -> None:
    assert settled(machine, accelerator, count) == asked


@pytest.mark.parametrize(
    ("machine", "accelerator", "target"),
    [
        ("n1-standard-2", None, ("cpu", 40)),
        ("n1-standard-4", None, ("cpu", 60)),
        ("n1-standard-8", None, ("cpu", 70)),
        ("n1-standard-32", None, ("cpu", 77)),
        ("n1-standard-4", "NVIDIA_TESLA_T4", ("duty_cycle", 60)),
        ("g2-standard-8", None, ("duty_cycle", 60)),
    ],
)
def test_a_full_replica_is_over_its_target(machine: str, accelerator: str | None, target: tuple[str, int]) -> None:
    """One core is the platform's: of two cores a replica can use half, of 32 nearly all."""
    assert full_at_per_cent(machine, accelerator) == target
