"""FastAPI and sentence-transformers, the service that most people write first: peers/fastapi_app.py on uvicorn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.server import OFFLINE, Launch
from bench.systems.system import REPOSITORY, Prepared, System
from bench.venv import run_tool
from serving.ports import free_ports

PEERS = REPOSITORY / "bench" / "peers"
EXPORTED = "model"
_EXPORT = """
import sys
from sentence_transformers import SentenceTransformer
SentenceTransformer(sys.argv[1], device="cpu", backend="openvino").save_pretrained(sys.argv[2])
"""


@dataclass(frozen=True)
class FastApi(System):
    """sentence-transformers' usual engine, torch."""

    path: ClassVar[str] = "/embed"
    packages: ClassVar[Sequence[str]] = ("fastapi", "uvicorn", "sentence-transformers", "transformers", "torch")

    def launch(self, prepared: Prepared) -> Launch:
        """Uvicorn with one worker, its default."""
        return _uvicorn(prepared, prepared.model.folder, "torch")

    def body(self, texts: Sequence[str]) -> bytes:
        """As the app defines it."""
        return json.dumps({"texts": list(texts)}, ensure_ascii=False).encode()

    def vectors(self, answer: bytes) -> list[list[float]]:
        """As the app defines it."""
        return [[float(number) for number in vector] for vector in json.loads(answer)["embeddings"]]


@dataclass(frozen=True)
class FastApiOpenVino(FastApi):
    """The same app on sentence-transformers' OpenVINO engine, the model exported beforehand as its manual advises."""

    packages: ClassVar[Sequence[str]] = (*FastApi.packages, "optimum-intel", "openvino")
    keeps: ClassVar[bool] = True

    def prepare(self, prepared: Prepared) -> None:
        """Export the model."""
        run_tool([prepared.python, "-c", _EXPORT, prepared.model.folder, prepared.folder / EXPORTED], OFFLINE)

    def launch(self, prepared: Prepared) -> Launch:
        """Uvicorn with one worker, its default."""
        return _uvicorn(prepared, prepared.folder / EXPORTED, "openvino")


def _uvicorn(prepared: Prepared, model: Path, backend: str) -> Launch:
    (port,) = free_ports(1)
    options = ["--app-dir", str(PEERS), "--host", "127.0.0.1", "--port", str(port)]
    return Launch(
        command=[str(prepared.python), "-m", "uvicorn", "fastapi_app:app", *options],
        port=port,
        folder=prepared.folder,
        environment={"MODEL": str(model), "BACKEND": backend},
    )
