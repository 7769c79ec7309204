"""infinity, an embedding server in Python that batches requests: its engines torch and optimum (ONNX Runtime)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.server import Launch
from bench.systems.system import Prepared, System
from serving.ports import free_ports

SERVED_NAME = "bench"


@dataclass(frozen=True)
class Infinity(System):
    """The engine torch."""

    path: ClassVar[str] = "/embeddings"
    packages: ClassVar[Sequence[str]] = ("infinity-emb", "sentence-transformers", "transformers", "torch")

    def launch(self, prepared: Prepared) -> Launch:
        """Its own defaults, on the model's directory."""
        return _infinity(prepared, prepared.model.folder, ["--engine", "torch"])

    def body(self, texts: Sequence[str]) -> bytes:
        """OpenAI's shape."""
        return json.dumps({"model": SERVED_NAME, "input": list(texts)}, ensure_ascii=False).encode()

    def vectors(self, answer: bytes) -> list[list[float]]:
        """OpenAI's shape."""
        return [[float(number) for number in item["embedding"]] for item in json.loads(answer)["data"]]


def _infinity(prepared: Prepared, model: Path, options: Sequence[str]) -> Launch:
    (port,) = free_ports(1)
    where = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    what = ["--model-id", str(model), "--served-model-name", SERVED_NAME, *options]
    return Launch(
        command=[str(prepared.python.with_name("infinity_emb")), "v2", *what, *where],
        port=port,
        folder=prepared.folder,
    )
