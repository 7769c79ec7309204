"""Which precision a device gets, by the flags of a CPU: native ones, nothing emulated, and no guess."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvec.encoder import precision
from marvec.errors import SettingsError

PLAIN = "processor\t: 0\nflags\t\t: fpu avx2 avx512f avx512_vnni\nbugs\t\t: spectre_v1\n"
COOPER_LAKE = (
    "processor\t: 0\nflags\t\t: fpu avx512f avx512_bf16\n\nprocessor\t: 1\nflags\t\t: fpu avx512f avx512_bf16\n"
)
SAPPHIRE_RAPIDS = "flags\t\t: fpu amx_bf16 avx512_fp16 amx_tile amx_int8\n"
NEOVERSE_V1 = "processor\t: 0\nFeatures\t: fp asimd sve i8mm bf16\nCPU implementer\t: 0x41\n"
NEOVERSE_N1 = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"
NO_FLAGS = "processor\t: 0\nmodel name\t: has avx512_bf16 in its name\n"

EMULATED = (
    "engine.dtype: this CPU would have to emulate bfloat16 (it has neither avx512_bf16 nor amx_bf16); use auto, which "
    "takes bfloat16 where it is native, or float32"
)
NO_FLOAT16 = "engine.dtype: float16 needs a CUDA device; use auto, float32 or bfloat16 on the CPU"


@pytest.fixture
def cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that tells of the CPU; it does not exist yet."""
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(precision, "_CPUINFO", file)
    return file


@pytest.mark.parametrize(
    ("told", "native"),
    [
        (PLAIN, False),
        (COOPER_LAKE, True),
        (SAPPHIRE_RAPIDS, True),
        (NEOVERSE_V1, True),
        (NEOVERSE_N1, False),
        (NO_FLAGS, False),
        ("", False),
    ],
)
def test_whether_a_cpu_has_bfloat16(told: str, native: bool, cpuinfo: Path) -> None:
    cpuinfo.write_text(told)

    assert precision.cpu_has_bfloat16() is native


def test_flags_that_cannot_be_read_are_none(cpuinfo: Path) -> None:
    assert precision.cpu_has_bfloat16() is False


def test_odd_bytes_do_no_harm(cpuinfo: Path) -> None:
    cpuinfo.write_bytes(b"model name\t: \xff\xfe\nflags\t\t: amx_bf16\n")

    assert precision.cpu_has_bfloat16() is True


@pytest.mark.parametrize(
    ("dtype", "told", "settled"),
    [
        ("float32", PLAIN, "float32"),
        ("float32", SAPPHIRE_RAPIDS, "float32"),
        ("bfloat16", COOPER_LAKE, "bfloat16"),
        ("int8", PLAIN, "int8"),
        ("auto", PLAIN, "float32"),
        ("auto", COOPER_LAKE, "bfloat16"),
        ("auto", NEOVERSE_V1, "bfloat16"),
    ],
)
def test_what_a_cpu_computes_in(dtype: str, told: str, settled: str, cpuinfo: Path) -> None:
    cpuinfo.write_text(told)

    assert precision.settle(dtype, "cpu") == settled


@pytest.mark.parametrize(
    ("dtype", "told", "message"),
    [
        ("bfloat16", PLAIN, EMULATED),
        ("bfloat16", NO_FLAGS, EMULATED),
        ("float16", PLAIN, NO_FLOAT16),
        ("float16", SAPPHIRE_RAPIDS, NO_FLOAT16),
    ],
)
def test_what_a_cpu_would_have_to_emulate_is_refused(dtype: str, told: str, message: str, cpuinfo: Path) -> None:
    cpuinfo.write_text(told)

    with pytest.raises(SettingsError) as refusal:
        precision.settle(dtype, "cpu")

    assert str(refusal.value) == message


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:7"])
@pytest.mark.parametrize(
    ("dtype", "settled"),
    [("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16"), ("auto", "float16")],
)
def test_a_gpu_takes_what_is_asked_whatever_the_cpu_is(dtype: str, settled: str, device: str, cpuinfo: Path) -> None:
    cpuinfo.write_text(PLAIN)

    assert precision.settle(dtype, device) == settled
