"""What a run has measured, every sample of it, and the JSON file it is kept in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.machine import Machine

SCHEMA = 1


class ResultError(Exception):
    """A file is no result of this benchmark, or one of another schema."""


@dataclass(frozen=True)
class Contestant:
    """A system that was asked to take part, for one model.

    Attributes:
        model: The model's name.
        system: The system's name.
        title: As in tables.
        problem: Why it does not take part, or what is wrong with its vectors; "" when all is well.
        cosine: The mean cosine of its vectors to sentence-transformers'; None where it gave none.
        least_cosine: The lowest one.
        versions: Package to version.
    """

    model: str
    system: str
    title: str
    problem: str = ""
    cosine: float | None = None
    least_cosine: float | None = None
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """One system under one load for some seconds.

    Attributes:
        model: The model's name.
        system: The system's name.
        corpus: The corpus's name.
        cores: The cores that the server was given.
        clients: Requests under way at any time.
        texts: Texts in each request.
        round: Which of the interleaved rounds, from 0.
        latencies_s: Of each request.
        elapsed_s: From the first request to the last answer.
        client_cpu_s: CPU time that the load itself took.
        problem: Why there are no latencies; "" when all is well.
    """

    model: str
    system: str
    corpus: str
    cores: int
    clients: int
    texts: int
    round: int
    latencies_s: list[float] = field(default_factory=list)
    elapsed_s: float = 0.0
    client_cpu_s: float = 0.0
    problem: str = ""

    @property
    def load(self) -> str:
        """The load's name, such as 16x1."""
        return f"{self.clients}x{self.texts}"

    @property
    def texts_per_s(self) -> float:
        """Texts whose vectors came back, over the time it took."""
        return len(self.latencies_s) * self.texts / self.elapsed_s


@dataclass(frozen=True)
class ColdStart:
    """One start of a server, from its process to its first answer."""

    model: str
    system: str
    round: int
    seconds: float


@dataclass(frozen=True)
class Memory:
    """A server's memory with all its processes: proportional set size, idle after loading and at most under load."""

    model: str
    system: str
    idle_bytes: int
    peak_bytes: int


@dataclass(frozen=True)
class EngineSample:
    """The engine without a server, once through a corpus.

    Attributes:
        model: The model's name.
        system: The system's name.
        corpus: The corpus's name.
        batch: Texts in one call.
        round: Which repeat, from 0.
        texts: Texts in all calls.
        seconds: What they took.
        flops: Floating-point operations that the model needs for them.
        gemm_flops_per_s: What multiplying large matrices reached just before.
    """

    model: str
    system: str
    corpus: str
    batch: int
    round: int
    texts: int
    seconds: float
    flops: float
    gemm_flops_per_s: float


@dataclass(frozen=True)
class Soak:
    """A system at full load for minutes.

    Attributes:
        model: The model's name.
        system: The system's name.
        requests: How many were answered.
        seconds: When each look at its memory was.
        pss_bytes: What it was then.
        problem: Why it ended early; "" when it did not.
    """

    model: str
    system: str
    requests: int
    seconds: list[float]
    pss_bytes: list[int]
    problem: str = ""


@dataclass(frozen=True)
class Result:
    """One run.

    Attributes:
        command: What was asked, as on the command line.
        started: When, in ISO 8601 with the zone.
        machine: Where.
        baseline: The system that ratios refer to.
        contestants: Who was asked to take part.
        samples: Systems under load.
        cold_starts: Starts.
        memory: Memory.
        engine: The engine alone.
        soaks: Memory over minutes.
        schema: Of the file.
    """

    command: str
    started: str
    machine: Machine
    baseline: str
    contestants: list[Contestant] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    cold_starts: list[ColdStart] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    engine: list[EngineSample] = field(default_factory=list)
    soaks: list[Soak] = field(default_factory=list)
    schema: int = SCHEMA

    def write(self, file: Path) -> None:
        """Write it as JSON, times to the microsecond."""
        content = json.loads(json.dumps(asdict(self)), parse_float=lambda text: round(float(text), 6))
        file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, file: Path) -> Result:
        """Read what `write` wrote.

        Raises:
            ResultError: It is something else.
        """
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            if content["schema"] != SCHEMA:
                raise ResultError(f"{file}: schema {content['schema']}, this benchmark reads {SCHEMA}")
            content["machine"] = Machine(**content["machine"])
            for key, kind in _LISTS.items():
                content[key] = [kind(**item) for item in content[key]]
            return cls(**content)
        except (ValueError, KeyError, TypeError) as err:
            raise ResultError(f"{file}: not a result of this benchmark: {err}") from err


_LISTS: dict[str, Callable[..., object]] = {
    "contestants": Contestant,
    "samples": Sample,
    "cold_starts": ColdStart,
    "memory": Memory,
    "engine": EngineSample,
    "soaks": Soak,
}
