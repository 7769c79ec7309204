"""A model at work: reads requests, embeds those of one batch together, writes responses.

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

from marvec import __version__, request, response
from marvec.admission import Admission
from marvec.embedder import Embedder
from marvec.errors import BusyError, InternalError, MarvecError, SelfTestError
from marvec.golden import Golden
from marvec.pooling import finish
from marvec.request import EmbeddingRequest
from marvec.settings import Settings
from marvec.tokens import Tokens

logger = logging.getLogger("marvec")
# TorchServe reads the answers to a batch in time that grows with the square of their size: 70 MB take it 12 s.
_BATCH_ANSWER_BYTES = 24_000_000
_USABLE_SHARE_OF_TIMEOUT = 0.5  # the speed was measured on short inputs, and other work may share the cores


@dataclass(frozen=True)
class Job:
    """A request that was let in, with the tokens of its inputs."""

    request: EmbeddingRequest
    tokens: Sequence[Tokens]

    @property
    def token_count(self) -> int:
        """Tokens to compute."""
        return sum(len(item.ids) for item in self.tokens)


class EmbeddingService:
    """A loaded and self-tested model."""

    def __init__(
        self, embedder: Embedder, golden_cosine: float, capacity_tokens: int, drift: Mapping[str, object] | None = None
    ) -> None:
        """Put the parts together; `load` is the usual way.

        Args:
            embedder: The model.
            golden_cosine: How well it reproduces the vectors recorded at pack time.
            capacity_tokens: What it can compute in the time that the server allows for one batch.
            drift: How far this encoder's vectors were from PyTorch's when it was packed; None where none were compared.
        """
        limits = embedder.settings.limits
        capacity_tokens = max(capacity_tokens, embedder.settings.model.max_length)  # one full text must pass
        most = min(limits.max_request_tokens, capacity_tokens)
        self._embedder = embedder
        self._golden_cosine = golden_cosine
        self._capacity_tokens = capacity_tokens
        self._drift = drift
        self._admission = Admission(embedder.tokenizer, replace(limits, max_request_tokens=most))

    @classmethod
    def load(cls, folder: Path, settings: Settings, device: str, response_timeout_s: float) -> EmbeddingService:
        """Load an archive's model and prove that it gives the vectors it gave when it was packed.

        Args:
            folder: The unpacked archive: `model/` and golden.json.
            settings: From model-config.yaml.
            device: "cpu" or "cuda:N".
            response_timeout_s: After which the server ends a worker that has not answered.

        Raises:
            ConfigurationError: When a file is missing or does not fit, or the self-test fails.
        """
        embedder = Embedder.load(folder / "model", settings, device)
        cosine = Golden.load(folder / "golden.json").check(embedder)
        capacity = int(embedder.tokens_per_s() * response_timeout_s * _USABLE_SHARE_OF_TIMEOUT)
        # transformers is what the others were held to; on CUDA it runs beside a graph that was measured for CPUs.
        drift = None if embedder.encoder.name == "transformers" else _read_drift(folder / "drift.json")
        return cls(embedder, cosine, capacity, drift)

    @property
    def encoder(self) -> str:
        """The name of the encoder that runs the model."""
        return self._embedder.encoder.name

    def read(self, body: object, query: Mapping[str, str], path: str) -> Job:
        """Parse and tokenize one request.

        Raises:
            RequestError: When the caller must send something else.
        """
        parsed = request.parse(body, self._embedder.settings, query, path)
        return Job(parsed, self._admission.admit(parsed))

    def embed(self, jobs: Sequence[Job]) -> list[Tensor | MarvecError]:
        """Embed the inputs of several requests in one call of the model.

        Returns:
            For each job, in order, its vectors [inputs, dimension] float32, or what went wrong with it.
        """
        fitting = self._fitting(jobs)
        results: list[Tensor | MarvecError] = [BusyError() for _ in jobs]
        for i, result in zip(fitting, self._embed_together([jobs[i] for i in fitting])):
            results[i] = result
        return results

    def write(self, job: Job, vectors: Tensor) -> bytes:
        """Serialize one answer."""
        return response.serialize(job.request, job.tokens, vectors.numpy())

    def describe(self) -> dict[str, object]:
        """What this model is and how it is served, in plain JSON values."""
        settings, encoder = self._embedder.settings, self._embedder.encoder
        limits = self._admission.limits
        return {
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
            "self_test": {"golden_cosine": round(self._golden_cosine, 6)},
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
            answer_bytes = response.size_bytes(job.request)
            if not fitting or (job.token_count <= room_tokens and answer_bytes <= room_bytes):
                fitting.append(i)
                room_tokens -= job.token_count
                room_bytes -= answer_bytes
        return fitting

    def _embed_together(self, jobs: Sequence[Job]) -> list[Tensor | MarvecError]:
        vectors = self._try_embed(jobs)
        failed = isinstance(vectors, MarvecError) or not torch.isfinite(vectors).all()
        if failed and len(jobs) > 1:
            # One of them is at fault, or all together are too much: ask each alone. Numbers that are not finite spread
            # to all inputs of their row.
            return [result for job in jobs for result in self._embed_together([job])]
        if isinstance(vectors, MarvecError):
            return [vectors]
        parts = torch.split(vectors, [len(job.tokens) for job in jobs])
        return [self._finish(job, part) for job, part in zip(jobs, parts)]

    def _try_embed(self, jobs: Sequence[Job]) -> Tensor | MarvecError:
        try:
            return self._embedder.embed([item for job in jobs for item in job.tokens])
        except Exception as err:
            logger.exception("%s: the encoder failed on %d requests", self._embedder.settings.model.id, len(jobs))
            return InternalError(f"the encoder failed: {err}")

    def _finish(self, job: Job, vectors: Tensor) -> Tensor | MarvecError:
        asked = job.request.parameters
        finished = finish(vectors, asked.dimension, asked.normalize)
        bad = (~torch.isfinite(finished).all(dim=1)).nonzero().flatten().tolist()
        if not bad:
            return finished
        logger.error("%s: inputs %s gave numbers that are not finite", self._embedder.settings.model.id, bad)
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
