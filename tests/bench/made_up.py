"""A result as a run would give it, with a bit of everything, and figures that can be followed by hand."""

from __future__ import annotations

from bench.machine import Machine
from bench.result import ColdStart, Contestant, EngineSample, Memory, Result, Sample, Soak

MIB = 2**20


def result() -> Result:
    """Return two systems under two loads in two rounds, one that never started, and one of each other thing."""
    samples = [
        Sample("tiny", system, "mixed", 2, clients, texts, number, [latency_s] * 10, 10 * latency_s / clients, 0.01)
        for number, factor in enumerate((1.0, 1.2))
        for clients, texts in ((1, 1), (4, 32))
        for system, latency_s in (("marvec-float32", 0.01 * factor), ("fastapi", 0.02))
    ]
    return Result(
        command="python -m bench run",
        started="2026-12-01T12:00:00+00:00",
        machine=Machine("a processor", ["avx2"], 2, 8_000_000_000, "Linux 6 x86_64", "3.11.7", "0123456789ab"),
        baseline="fastapi",
        contestants=[
            Contestant("tiny", "marvec-float32", "Marvec, float32", "", 1.0, 0.9999, {"torch": "2.13.0"}),
            Contestant("tiny", "fastapi", "FastAPI", "", 1.0, 1.0, {"fastapi": "0.165.0", "torch": "2.13.0"}),
            Contestant("tiny", "other", "Other", "pip | ended\nwith status 1"),
        ],
        samples=samples,
        cold_starts=[ColdStart("tiny", "fastapi", number, 4.0 + number) for number in range(3)],
        memory=[Memory("tiny", "fastapi", 500 * MIB, 750 * MIB)],
        engine=[EngineSample("tiny", "marvec-float32", "mixed", 32, 0, 64, 0.5, 4e10, 1e11)],
        soaks=[Soak("tiny", "marvec-float32", 99, [0.0, 60.0, 120.0, 180.0], [MIB, 3 * MIB, 4 * MIB, 4 * MIB])],
    )
