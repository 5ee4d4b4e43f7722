"""Probe of lab 6's copies that overlap with compute, on a GPU."""

from __future__ import annotations

from typing import Any

import torch

from peakmem.probes import Namespace
from peakmem.probes.gpu import gpu_seconds, require_gpu

__all__ = ["COPY_BYTES", "gpu_overlap"]

COPY_BYTES = 256 * 2**20
_PRODUCT_SIZE = 4096
_REPEATS = 5


def gpu_overlap(student: Namespace) -> dict[str, Any]:
    """Time compute and copies on this GPU one after the other, then the student's `overlapped`.

    Returns seconds (`compute`, `copies` and `student`), and whether the student's call did all the
    compute and all the copies (`computed`, `copied`). Raises RuntimeError if torch finds no CUDA
    GPU.
    """
    require_gpu("gpu_overlap times copies to")
    factor = torch.randn(_PRODUCT_SIZE, _PRODUCT_SIZE, device="cuda", dtype=torch.bfloat16)
    sources = [torch.full((COPY_BYTES // 16,), i, dtype=torch.int32).pin_memory() for i in range(4)]
    targets = [torch.zeros_like(source, device="cuda") for source in sources]
    product = torch.zeros_like(factor)

    def copy() -> None:
        for source, target in zip(sources, targets, strict=True):
            target.copy_(source, non_blocking=True)

    copy_seconds = gpu_seconds(copy)
    one = gpu_seconds(lambda: torch.mm(factor, factor, out=product))
    products = max(1, round(copy_seconds / one))
    calls = []

    def compute() -> None:
        calls.append(1)
        for _ in range(products):
            torch.mm(factor, factor, out=product)

    compute_seconds = gpu_seconds(compute)
    expected = product.clone()
    calls.clear()
    for tensor in (product, *targets):
        tensor.zero_()
    pairs = list(zip(sources, targets, strict=True))
    seconds = gpu_seconds(lambda: student.overlapped(compute, pairs), repeats=_REPEATS)
    return {
        "compute": compute_seconds,
        "copies": copy_seconds,
        "student": seconds,
        "computed": len(calls) == _REPEATS + 1 and bool(torch.equal(product, expected)),
        "copied": all(bool((target == i).all()) for i, target in enumerate(targets) if i),
    }
