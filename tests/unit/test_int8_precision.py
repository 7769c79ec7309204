"""int8 by the flags of a CPU: where it is not native, a worker serves it all the same, and says so."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from marvec import encoder
from marvec.encoder import precision
from marvec.encoder.openvino_encoder import GRAPH
from marvec.errors import ModelDirError
from marvec.settings import EmbeddingSettings, EngineSettings

WARNING = "int8 may be slower than float32 on this CPU, which has neither avx512_vnni, avx_vnni nor amx_int8"


@pytest.mark.parametrize(
    ("told", "native"),
    [
        ("flags\t\t: fpu avx2 fma\n", False),
        ("flags\t\t: fpu avx2 avx512f avx512bw\n", False),
        ("flags\t\t: fpu avx2 avx512f avx512_vnni\n", True),
        ("flags\t\t: fpu avx2 avx_vnni\n", True),
        ("Features\t: fp asimd asimddp\n", True),
        ("model name\t: has avx512_vnni in its name\n", False),
        ("", False),
    ],
)
def test_a_cpu_without_native_int8_is_told(
    told: str, native: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(told)
    monkeypatch.setattr(precision, "_CPUINFO", file)
    caplog.set_level(logging.WARNING, "marvec")

    with pytest.raises(ModelDirError, match=f"{GRAPH}: OpenVINO cannot load it"):  # there is no graph in the folder
        encoder.load(tmp_path, EngineSettings("openvino", "int8"), "cpu", EmbeddingSettings.task)

    assert caplog.messages == ([] if native else [WARNING])
