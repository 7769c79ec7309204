"""A model at work: reads requests, computes those of one batch together, writes responses.

One bad request never touches its neighbours: what is wrong with it becomes its own result.
"""

from __future__ import annotations

import contextlib
import json
import logging
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import torch
from torch import Tensor

from marvec import __version__, loading
from marvec.admission import Admission
from marvec.errors import BusyError, InternalError, MarvecError, SelfTestError
from marvec.golden import Golden
from marvec.model import Model
from marvec.request import Request
from marvec.settings import Settings
from marvec.tokens import Tokens

logger = logging.getLogger("marvec")
# TorchServe reads the answers to a batch in time that grows with the square of their size: 70 MB take it 12 s.
_BATCH_ANSWER_BYTES = 24_000_000
_USABLE_SHARE_OF_TIMEOUT = 0.5  # the speed was measured on short inputs, and other work may share the cores


@dataclass(frozen=True)
class Job:
    """A request that was let in, with the tokens of its inputs."""

    request: Request
    tokens: Sequence[Tokens]

    @property
    def token_count(self) -> int:
        """Tokens to compute."""
        return sum(len(item.ids) for item in self.tokens)


class Service:
    """A loaded and self-tested model."""

    def __init__(
        self,
        model: Model,
        self_test: Mapping[str, float],
        capacity_tokens: int,
        drift: Mapping[str, object] | None = None,
    ) -> None:
        """Put the parts together; `load` is the usual way.

        Args:
            model: The model.
            self_test: How well it reproduces the answers recorded at pack time.
            capacity_tokens: What it can compute in the time that the server allows for one batch.
            drift: How far this encoder's answers were from PyTorch's when it was packed; None where none were compared.
        """
        limits = model.settings.limits
        capacity_tokens = max(capacity_tokens, model.settings.model.max_length)  # one full text must pass
        most = min(limits.max_request_tokens, capacity_tokens)
        self._model = model
        self._self_test = self_test
        self._capacity_tokens = capacity_tokens
        self._drift = drift
        self._admission = Admission(model.tokenizer, replace(limits, max_request_tokens=most))

    @classmethod
    def load(
        cls,
        folder: Path,
        settings: Settings,
        device: str,
        response_timeout_s: float,
    ) -> Service:
        """Load an archive's model and prove that it gives the answers it gave when it was packed.

        Args:
            folder: The unpacked archive: `model/` and golden.json.
            settings: From model-config.yaml.
            device: "cpu" or "cuda:N".
            response_timeout_s: After which the server ends a worker that has not answered.

        Raises:
            ConfigurationError: When a file is missing or does not fit, or the self-test fails.
        """
        model = loading.load(folder / "model", settings, device)
        self_test = Golden.load(folder / "golden.json").check(model)
        capacity = int(model.tokens_per_s() * response_timeout_s * _USABLE_SHARE_OF_TIMEOUT)
        # transformers is what the others were held to; on CUDA it runs beside a graph that was measured for CPUs.
        drift = None if model.encoder.name == "transformers" else _read_drift(folder / "drift.json")
        return cls(model, self_test, capacity, drift)

    @property
    def encoder(self) -> str:
        """The name of the encoder that runs the model."""
        return self._model.encoder.name

    def read(self, body: object, query: Mapping[str, str], path: str) -> Job:
        """Parse and tokenize one request.

        Raises:
            RequestError: When the caller must send something else.
        """
        parsed = self._model.parse(body, query, path)
        return Job(parsed, self._admission.admit(parsed))

    def compute(self, jobs: Sequence[Job]) -> list[Tensor | MarvecError]:
        """Compute the inputs of several requests in one call of the model.

        Returns:
            For each job, in order, its answers [inputs, numbers] float32, or what went wrong with it.
        """
        fitting = self._fitting(jobs)
        results: list[Tensor | MarvecError] = [BusyError() for _ in jobs]
        for i, result in zip(fitting, self._together([jobs[i] for i in fitting])):
            results[i] = result
        return results

    def write(self, job: Job, answers: Tensor) -> bytes:
        """Serialize what `compute` gave for a job."""
        return job.request.serialize(job.tokens, answers)

    def describe(self) -> dict[str, object]:
        """What this model is and how it is served, in plain JSON values."""
        settings, encoder = self._model.settings, self._model.encoder
        limits = self._admission.limits
        return {
            "task": settings.task,
            "model": settings.to_mapping()["model"],
            "engine": {
                "encoder": encoder.name,
                "device": encoder.device,
                "dtype": encoder.dtype,
                "max_batch_tokens": encoder.policy.max_tokens,
                "lanes": encoder.policy.lanes,
                "threads": encoder.threads,
            },
            "limits": replace(settings, limits=limits).to_mapping()["limits"],
            "self_test": {name: round(figure, 6) for name, figure in self._self_test.items()},
            "drift": self._drift,
            "versions": {
                "marvec": __version__,
                "python": platform.python_version(),
                **_versions("torch", "openvino", "transformers", "tokenizers"),
            },
        }

    def _fitting(self, jobs: Sequence[Job]) -> list[int]:
        """The jobs whose tokens can be computed, and whose answers can be sent, in the server's time; at least one."""
        fitting: list[int] = []
        room_tokens, room_bytes = self._capacity_tokens, _BATCH_ANSWER_BYTES
        for i, job in enumerate(jobs):
            answer_bytes = job.request.answer_bytes
            if not fitting or (job.token_count <= room_tokens and answer_bytes <= room_bytes):
                fitting.append(i)
                room_tokens -= job.token_count
                room_bytes -= answer_bytes
        return fitting

    def _together(self, jobs: Sequence[Job]) -> list[Tensor | MarvecError]:
        numbers = self._try(jobs)
        failed = isinstance(numbers, MarvecError) or not torch.isfinite(numbers).all()
        if failed and len(jobs) > 1:
            # One of them is at fault, or all together are too much: ask each alone. Numbers that are not finite spread
            # to all inputs of their row.
            return [result for job in jobs for result in self._together([job])]
        if isinstance(numbers, MarvecError):
            return [numbers]
        parts = torch.split(numbers, [len(job.tokens) for job in jobs])
        return [self._finish(job, part) for job, part in zip(jobs, parts)]

    def _try(self, jobs: Sequence[Job]) -> Tensor | MarvecError:
        try:
            return self._model.compute([item for job in jobs for item in job.tokens])
        except Exception as err:
            logger.exception("%s: the encoder failed on %d requests", self._model.settings.model.id, len(jobs))
            return InternalError(f"the encoder failed: {err}")

    def _finish(self, job: Job, numbers: Tensor) -> Tensor | MarvecError:
        finished = job.request.finish(numbers)
        # Both: a softmax makes ones and zeros of infinity, and a norm makes NaN of zeros.
        sound = torch.isfinite(numbers).all(dim=1) & torch.isfinite(finished).all(dim=1)
        bad = (~sound).nonzero().flatten().tolist()
        if not bad:
            return finished
        logger.error("%s: inputs %s gave numbers that are not finite", self._model.settings.model.id, bad)
        return InternalError(f"inputs {bad} gave numbers that are not finite")


def _read_drift(file: Path) -> Mapping[str, object] | None:
    if not file.is_file():
        return None
    try:
        drift: Mapping[str, object] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as err:
        raise SelfTestError(f"{file}: cannot be read; pack the model again: {err}") from err
    return drift


def _versions(*names: str) -> dict[str, str]:
    """Those of the installed packages among some."""
    found: dict[str, str] = {}
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
