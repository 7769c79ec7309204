"""In which precision a device computes: what it does natively, never what it would have to emulate."""

from __future__ import annotations

from pathlib import Path

from marvec.errors import SettingsError

_BFLOAT16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})  # the last one is ARM's
_INT8_FLAGS = frozenset({"avx512_vnni", "avx_vnni", "amx_int8", "asimddp"})  # the last one is ARM's
_CPUINFO = Path("/proc/cpuinfo")


def settle(dtype: str, device: str) -> str:
    """Turn "auto" into a dtype, and refuse one that the device lacks.

    Args:
        dtype: One of settings.DTYPES.
        device: "cpu" or "cuda:N".

    Returns:
        "float32", "bfloat16", "float16" or "int8".

    Raises:
        SettingsError: When the device cannot compute in the dtype.
    """
    on_cuda = device.startswith("cuda")
    if dtype == "auto":
        if on_cuda:
            return "float16"
        return "bfloat16" if cpu_has_bfloat16() else "float32"
    if dtype == "float16" and not on_cuda:
        raise SettingsError("engine.dtype: float16 needs a CUDA device; use auto, float32 or bfloat16 on the CPU")
    if dtype == "bfloat16" and not on_cuda and not cpu_has_bfloat16():
        raise SettingsError(
            "engine.dtype: this CPU would have to emulate bfloat16 (it has neither avx512_bf16 nor amx_bf16); use "
            "auto, which takes bfloat16 where it is native, or float32"
        )
    return dtype


def cpu_has_bfloat16() -> bool:
    """Whether this machine's CPU multiplies bfloat16 matrices natively; False where the flags cannot be read."""
    return not _BFLOAT16_FLAGS.isdisjoint(_cpu_flags())


def cpu_has_int8() -> bool:
    """Whether this machine's CPU adds up products of int8 natively; False where the flags cannot be read."""
    return not _INT8_FLAGS.isdisjoint(_cpu_flags())


def _cpu_flags() -> list[str]:
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return next((line for line in lines if line.lower().startswith(("flags", "features"))), "").split()
