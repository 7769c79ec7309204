"""What a run has measured, every sample of it, and the JSON file it is kept in."""

from __future__ import annotations

import json
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
class Result:
    """One run.

    Attributes:
        command: What was asked, as on the command line.
        started: When, in ISO 8601 with the zone.
        machine: Where.
        baseline: The system that ratios refer to.
        contestants: Who was asked to take part.
        samples: What came of it.
        schema: Of the file.
    """

    command: str
    started: str
    machine: Machine
    baseline: str
    contestants: list[Contestant] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
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
            content["contestants"] = [Contestant(**item) for item in content["contestants"]]
            content["samples"] = [Sample(**item) for item in content["samples"]]
            return cls(**content)
        except (ValueError, KeyError, TypeError) as err:
            raise ResultError(f"{file}: not a result of this benchmark: {err}") from err
