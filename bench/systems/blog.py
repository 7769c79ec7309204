"""Plain TorchServe with the kind of handler that articles show: peers/blog_handler.py, default settings."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bench.server import Launch
from bench.systems.system import REPOSITORY, Prepared, System, UnavailableError
from bench.venv import run_tool
from serving.errors import JavaError
from serving.java import find_java
from serving.ports import free_ports

HANDLER = REPOSITORY / "bench" / "peers" / "blog_handler.py"
ARCHIVE = "blog"
MODEL_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


@dataclass(frozen=True)
class Blog(System):
    """TorchServe's own launcher, a worker a core."""

    path: ClassVar[str] = f"/predictions/{ARCHIVE}"
    packages: ClassVar[Sequence[str]] = ("torchserve", "transformers", "torch")
    drift: ClassVar[str] = "it cuts texts at 128 tokens"

    def prepare(self, prepared: Prepared) -> None:
        """Archive weights, tokenizer and handler."""
        archiver = prepared.python.with_name("torch-model-archiver")
        files = ",".join(str(prepared.model.folder / name) for name in MODEL_FILES)
        what = ["--model-name", ARCHIVE, "--version", "1.0", "--archive-format", "zip-store"]
        code = ["--handler", str(HANDLER), "--extra-files", files]
        weights = prepared.model.folder / "model.safetensors"
        run_tool([archiver, *what, *code, "--serialized-file", weights, "--export-path", prepared.folder])

    def launch(self, prepared: Prepared) -> Launch:
        """`torchserve --start --foreground`.

        Raises:
            UnavailableError: There is no Java.
        """
        inference, management, metrics, grpc_inference, grpc_management, workers = free_ports(6)
        lines = {
            "inference_address": f"http://127.0.0.1:{inference}",
            "management_address": f"http://127.0.0.1:{management}",
            "metrics_address": f"http://127.0.0.1:{metrics}",
            "grpc_inference_port": grpc_inference,
            "grpc_management_port": grpc_management,
            "initial_worker_port": workers,
        }
        config = prepared.folder / "config.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()), encoding="utf-8")
        try:
            java = find_java(os.environ).path
        except JavaError as err:
            raise UnavailableError(str(err)) from err
        start = [str(prepared.python.with_name("torchserve")), "--start", "--foreground", "--ncs"]
        models = ["--model-store", str(prepared.folder), "--models", f"{ARCHIVE}={ARCHIVE}.mar"]
        return Launch(
            command=[*start, *models, "--ts-config", str(config), "--disable-token-auth"],
            port=inference,
            folder=prepared.folder,
            environment={
                # Its workers are started as `python`, and Java as `java`.
                "PATH": f"{prepared.python.parent}:{java.parent}:{os.environ.get('PATH', '')}",
                # There it notes its process id, and takes another TorchServe's note for its own.
                "TMPDIR": str(prepared.folder),
            },
        )

    def body(self, texts: Sequence[str]) -> bytes:
        """As the handler reads it."""
        return json.dumps({"inputs": list(texts)}, ensure_ascii=False).encode()

    def vectors(self, answer: bytes) -> list[list[float]]:
        """A list of vectors."""
        return [[float(number) for number in vector] for vector in json.loads(answer)]

    def processes(self, cores: int) -> int:
        """A worker a core."""
        return cores
