"""Marvec itself, from this repository, as its README says: `marvec pack`, then `marvec serve`."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench import corpora, machine
from bench.server import Launch
from bench.systems.system import REPOSITORY, Prepared, System, UnavailableError
from bench.venv import run_tool
from serving.ports import free_ports

ARCHIVE = "bench"
BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16")
CALIBRATION_SEED = 1  # texts like those of the benchmark, but none of them


@dataclass(frozen=True)
class Marvec(System):
    """Marvec in one precision.

    Attributes:
        dtype: float32, bfloat16 or int8.
        encoding: float or base64, of the answer's numbers.
    """

    dtype: str = "float32"
    encoding: str = "float"
    path: ClassVar[str] = f"/predictions/{ARCHIVE}"
    packages: ClassVar[Sequence[str]] = ("marvec", "torchserve", "torch", "openvino")

    def prepare(self, prepared: Prepared) -> None:
        """Pack the archive.

        Raises:
            ToolError: `marvec pack` refuses the model or the precision.
            UnavailableError: The processor has no bfloat16.
        """
        if self.dtype == "bfloat16" and not set(BFLOAT16_FLAGS) & set(machine.read().cpu_flags):
            raise UnavailableError(f"this processor has none of {', '.join(BFLOAT16_FLAGS)}")
        command: list[str | Path] = [_marvec(prepared), "pack", prepared.model.folder]
        command += ["--name", ARCHIVE, "--model-store", prepared.folder]
        if self.dtype != "float32":
            command += ["--dtype", self.dtype]
        if self.dtype == "int8":
            texts = corpora.build("mixed", prepared.model.language, prepared.model.tokenizer, CALIBRATION_SEED).texts
            calibration = prepared.folder / "calibration.txt"
            calibration.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
            command += ["--calibration", calibration]
        run_tool(command)

    def launch(self, prepared: Prepared) -> Launch:
        """`marvec serve`, which finds the cores it may use by itself."""
        port, management, metrics = free_ports(3)
        return Launch(
            command=[str(_marvec(prepared)), "serve", ARCHIVE, "--model-store", str(prepared.folder)],
            port=port,
            folder=REPOSITORY,
            environment={
                "AIP_HTTP_PORT": str(port),
                "MARVEC_MANAGEMENT_PORT": str(management),
                "MARVEC_METRICS_PORT": str(metrics),
            },
        )

    def body(self, texts: Sequence[str]) -> bytes:
        """Vertex AI's shape."""
        request: dict[str, object] = {"instances": list(texts)}
        if self.encoding != "float":
            request["parameters"] = {"encodingFormat": self.encoding}
        return json.dumps(request, ensure_ascii=False).encode()

    def vectors(self, answer: bytes) -> list[list[float]]:
        """`predictions`; in base64 a vector is its float32 numbers, little-endian."""
        predictions = json.loads(answer)["predictions"]
        if self.encoding == "float":
            return [[float(number) for number in vector] for vector in predictions]
        raw = [base64.b64decode(text) for text in predictions]
        return [list(struct.unpack(f"<{len(data) // 4}f", data)) for data in raw]


def _marvec(prepared: Prepared) -> Path:
    return prepared.python.with_name("marvec")
