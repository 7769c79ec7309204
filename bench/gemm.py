"""What this machine's cores can do at best: multiplying matrices in float32."""

from __future__ import annotations

import time

import torch

SIZE = 1024
SECONDS = 0.5


def gemm_flops_per_s() -> float:
    """The fastest of many multiplications of two 1024 x 1024 matrices, in floating-point operations per second."""
    one, other, product = torch.rand(SIZE, SIZE), torch.rand(SIZE, SIZE), torch.empty(SIZE, SIZE)
    best_s = float("inf")
    until_s = time.perf_counter() + SECONDS
    while (began_s := time.perf_counter()) < until_s:
        torch.mm(one, other, out=product)
        best_s = min(best_s, time.perf_counter() - began_s)
    return 2 * SIZE**3 / best_s
