"""infinity, an embedding server in Python that batches requests: its engines torch and optimum (ONNX Runtime)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.server import OFFLINE, Launch
from bench.systems.system import Prepared, System
from bench.venv import run_tool
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


@dataclass(frozen=True)
class InfinityOnnx(Infinity):
    """The engine optimum, on a model exported and optimized beforehand.

    infinity would optimize by itself, but not with an optimum that runs on this torch; O2 is what it asks for.
    """

    packages: ClassVar[Sequence[str]] = ("infinity-emb", "optimum", "onnxruntime", "transformers")
    keeps: ClassVar[bool] = True

    def prepare(self, prepared: Prepared) -> None:
        """Export the model."""
        command = prepared.python.with_name("optimum-cli")
        options = ["--library", "transformers", "--task", "feature-extraction", "--optimize", "O2"]
        run_tool([command, "export", "onnx", "--model", prepared.model.folder, *options, prepared.folder], OFFLINE)
        file = prepared.folder / "config.json"
        config = json.loads(file.read_text(encoding="utf-8"))
        if config["model_type"] == "xlm-roberta":
            # It takes the number of positions for the longest text; XLM-R's begin after the padding's: two fewer fit.
            config["max_position_embeddings"] -= config["pad_token_id"] + 1
            file.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")

    def launch(self, prepared: Prepared) -> Launch:
        """Mean pooling, since it does not read the directory's and would take the first token."""
        # ".", for it hands optimum the path that it found the file under, and optimum compares that with a bare name.
        options = ["--engine", "optimum", "--pooling-method", "mean", "--onnx-disable-optimize"]
        return _infinity(prepared, Path("."), options)


def _infinity(prepared: Prepared, model: Path, options: Sequence[str]) -> Launch:
    (port,) = free_ports(1)
    where = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    what = ["--model-id", str(model), "--served-model-name", SERVED_NAME, *options]
    return Launch(
        command=[str(prepared.python.with_name("infinity_emb")), "v2", *what, *where],
        port=port,
        folder=prepared.folder,
    )
