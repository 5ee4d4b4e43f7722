"""Probe of lab 4's measurement on a GPU, and the stack to measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from peakmem.measure.meter import MemoryMeter
from peakmem.measure.reference_models import GPT
from peakmem.probes import Namespace
from peakmem.probes.gpu import gpu_seconds, require_gpu

__all__ = ["GPU_BATCH", "GPU_LAYERS", "gpu_stack", "gpu_tradeoff"]

GPU_LAYERS = 16
GPU_BATCH, _GPU_LENGTH, _GPU_WIDTH, _GPU_HEADS = 8, 1024, 1024, 16


def gpu_stack() -> tuple[nn.ModuleList, Tensor]:
    """Return GPU_LAYERS transformer blocks on the GPU, and an input for them.

    Width 1024, 16 heads, 8 sequences of 1024 tokens, float32, torch's fused attention. Raises
    RuntimeError if torch finds no CUDA GPU.
    """
    require_gpu("gpu_stack builds a model on")
    shape = SimpleNamespace(
        n_layers=GPU_LAYERS, d_model=_GPU_WIDTH, n_heads=_GPU_HEADS, vocab=2, context=_GPU_LENGTH
    )
    torch.manual_seed(0)
    blocks = GPT(shape).blocks.to("cuda")
    x = torch.randn(GPU_BATCH, _GPU_LENGTH, _GPU_WIDTH, device="cuda", requires_grad=True)
    return blocks, x


def gpu_tradeoff(student: Namespace, segment_lengths: Sequence[int]) -> dict[str, Any]:
    """Measure steps of the stack on this GPU, then let the student measure them.

    Returns `own` and `student`: for each segment length (seconds, peak bytes).
    """
    own = [_gpu_step(k) for k in segment_lengths]
    measured = [student.measure(k) for k in segment_lengths]
    return {"own": own, "student": [tuple(pair) for pair in measured]}


def _gpu_step(segment_length: int) -> tuple[float, int]:
    """Return the median seconds and peak requested bytes of forward and backward on the GPU."""
    from torch.utils.checkpoint import checkpoint as torch_checkpoint

    blocks, x = gpu_stack()

    def segment(first: int, last: int, y: Tensor) -> Tensor:
        for block in blocks[first:last]:
            y = block(y)
        return y

    def step() -> None:
        y = x
        last_start = (math.ceil(GPU_LAYERS / segment_length) - 1) * segment_length
        for first in range(0, last_start, segment_length):
            y = torch_checkpoint(segment, first, first + segment_length, y, use_reentrant=False)
        segment(last_start, GPU_LAYERS, y).sum().backward()  # type: ignore[no-untyped-call]
        blocks.zero_grad()
        x.grad = None

    for _ in range(2):
        step()
    with MemoryMeter("cuda") as meter:
        step()
    return gpu_seconds(step, repeats=3), meter.peak_bytes
