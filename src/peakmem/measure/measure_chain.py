"""Measures a chain: runs every stage of an nn.Sequential alone, under a clock and a meter."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from peakmem.measure.meter import MemoryMeter
from peakmem.plan.chain import Chain, Stage

__all__ = ["chain_of"]


def chain_of(module: nn.Sequential, inputs: torch.Tensor, *, repeats: int = 5) -> Chain:
    """Return the chain of a module whose stages each take and return one tensor.

    Times are medians of `repeats` runs in seconds, after a warm-up run. Bytes are the meter's, on
    the device of `inputs`. The stages run in their current mode, so running statistics change;
    gradients and RNG state don't. Raises TypeError if a stage doesn't return a tensor.

    >>> layers = nn.Sequential(nn.Linear(8, 16), nn.Sigmoid())
    >>> chain = chain_of(layers, torch.ones(4, 8), repeats=1)
    >>> [(stage.saved_bytes, stage.output_bytes) for stage in chain.stages]
    [(256, 256), (256, 256)]
    """
    x = inputs
    stages = []
    with torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
        for position, stage in enumerate(module):
            figures, x = _stage(stage, position, x, repeats)
            stages.append(figures)
    input_gradient = inputs.nbytes if inputs.requires_grad else 0
    return Chain(
        tuple(stages), inputs.untyped_storage().nbytes(), input_gradient_bytes=input_gradient
    )


def _stage(
    stage: nn.Module, position: int, x: torch.Tensor, repeats: int
) -> tuple[Stage, torch.Tensor]:
    """Return a stage's figures, and its output, which requires a gradient as in the chain."""
    parameters = [p for p in stage.parameters() if p.requires_grad]
    with torch.no_grad():
        held = x.detach().clone()  # a stage that works in place may change it
        with MemoryMeter(x.device, history=False).track(held) as meter:
            output = stage(held)
        if not isinstance(output, torch.Tensor):
            raise TypeError(
                f"stage {position} returned {type(output).__name__}, but the next stage needs one "
                "tensor; let every stage return one"
            )
    output_bytes = max(meter.live_bytes - meter.baseline_bytes, 0)
    forward_extra = meter.rise_bytes - output_bytes
    leaf = x.detach().requires_grad_(x.requires_grad)
    held = leaf.clone()
    wanted = [*([leaf] if x.requires_grad else []), *parameters]
    backward_extra, made_bytes = 0, sum(tensor.nbytes for tensor in wanted)
    with MemoryMeter(x.device, history=False).track(held) as meter:
        kept = stage(held)
        saved_bytes = max(meter.live_bytes - meter.baseline_bytes, output_bytes)
        keep_extra = max(meter.rise_bytes - saved_bytes, 0)
        if kept.requires_grad:
            gradient = torch.ones_like(kept)
            meter.begin_again()
            before = meter.live_bytes
            gradients = torch.autograd.grad(kept, wanted, gradient, allow_unused=True)
            backward_extra = meter.peak_bytes - before - made_bytes
            del gradients
    forward, backward = _seconds(stage, leaf, wanted, repeats)
    figures = Stage(
        forward_time=forward,
        backward_time=backward,
        saved_bytes=saved_bytes,
        output_bytes=output_bytes,
        gradient_bytes=kept.nbytes if kept.requires_grad else 0,
        parameter_gradient_bytes=sum(p.nbytes for p in parameters),
        keep_extra_bytes=keep_extra,
        forward_extra_bytes=max(forward_extra, 0),
        backward_extra_bytes=backward_extra,
    )
    return figures, kept.detach().requires_grad_(kept.requires_grad)


def _seconds(
    stage: nn.Module, leaf: torch.Tensor, wanted: list[torch.Tensor], repeats: int
) -> tuple[float, float]:
    """Return the median seconds of forward and of backward."""
    forward, backward = [], []
    for run in range(repeats + 1):
        held = leaf.clone()
        output, taken = _timed(leaf.device, partial(stage, held))
        undone = 0.0
        if output.requires_grad:
            gradient = torch.ones_like(output)
            differentiate = partial(
                torch.autograd.grad, output, wanted, gradient, allow_unused=True
            )
            _, undone = _timed(leaf.device, differentiate)
        if run:  # the first run warms up
            forward.append(taken)
            backward.append(undone)
    return statistics.median(forward), statistics.median(backward)


def _timed(device: torch.device, call: Callable[[], Any]) -> tuple[Any, float]:
    """Return a call's result, and its seconds, including the device's work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    result = call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return result, time.perf_counter() - start
