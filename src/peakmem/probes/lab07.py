"""Probes of lab 7, mixed precision."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from peakmem.probes import Namespace

__all__ = ["PRODUCT_SIZE", "gpu_speed", "loss_scaler"]

PRODUCT_SIZE = 8192  # rows and columns of both matrices in `gpu_speed`

# dtype of the matrices, and torch's setting for products of float32 matrices ("high" is TF32).
_PRECISIONS = {
    "float32": (torch.float32, "highest"),
    "tf32": (torch.float32, "high"),
    "float16": (torch.float16, "highest"),
    "bfloat16": (torch.bfloat16, "highest"),
}


def loss_scaler(
    student: Namespace,
    settings: Mapping[str, Any],
    gradients: Sequence[Sequence[Sequence[float]]],
    max_norm: float | None = None,
) -> list[dict[str, Any]]:
    """Train a few parameters with the student's `LossScaler(**settings)` and note every step.

    `gradients` holds, for each step and each parameter, the true gradient's values; inf and NaN
    are what an overflow would have left there. One more parameter never gets a gradient. The
    optimizer is SGD with momentum and two groups. With `max_norm` each step also calls `unscale_`
    and then clips the gradients.

    Returns one dict a step: `scale` is `scale(1.0)` after `update`, `parameters` are all values
    after it, and `unscaled` are the gradients' values just after `unscale_`, None without it.
    """
    parameters = [torch.nn.Parameter(torch.ones(len(values))) for values in gradients[0]]
    unused = torch.nn.Parameter(torch.ones(1))
    groups = [{"params": [unused, *parameters[:1]]}, {"params": parameters[1:]}]
    optimizer = torch.optim.SGD(groups, lr=0.125, momentum=0.5, foreach=False)
    scaler = student.LossScaler(**settings)
    steps = []
    for true in gradients:
        optimizer.zero_grad()
        products = [
            (parameter * torch.tensor(values)).sum()  # its gradient is `values`
            for parameter, values in zip(parameters, true, strict=True)
        ]
        scaler.scale(torch.stack(products).sum()).backward()
        unscaled = None
        if max_norm is not None:
            scaler.unscale_(optimizer)
            unscaled = _values(parameter.grad for parameter in parameters)
            torch.nn.utils.clip_grad_norm_(parameters, max_norm)
        scaler.step(optimizer)
        scaler.update()
        after = _values(parameter.detach() for parameter in parameters)
        steps.append({"scale": float(scaler.scale(1.0)), "parameters": after, "unscaled": unscaled})
    return steps


def _values(tensors: Any) -> list[float]:
    return [value for tensor in tensors for value in tensor.tolist()]


def gpu_speed(student: Namespace) -> dict[str, Any]:
    """Time a matrix product in four precisions on this GPU, then let the student time it.

    Returns `own` and `student`: dicts of seconds for float32, tf32, float16 and bfloat16. Raises
    RuntimeError where torch finds no CUDA GPU.
    """
    if not torch.cuda.is_available():
        raise RuntimeError(
            "gpu_speed times matrix products on a CUDA GPU, but torch finds none here; run it on "
            "a machine that has one, with a CUDA build of torch"
        )
    before = torch.get_float32_matmul_precision()
    try:
        own = {name: _seconds(*precision) for name, precision in _PRECISIONS.items()}
        torch.set_float32_matmul_precision("highest")
        return {"own": own, "student": student.speedup()}
    finally:
        torch.set_float32_matmul_precision(before)


def _seconds(dtype: torch.dtype, float32_precision: str) -> float:
    """The median time of one product, by the GPU's own clock, after a warm-up."""
    torch.set_float32_matmul_precision(float32_precision)
    # Random values: a GPU multiplies zeros faster, because that takes less power.
    x, w = (torch.randn(PRODUCT_SIZE, PRODUCT_SIZE, device="cuda", dtype=dtype) for _ in range(2))
    for _ in range(2):
        x @ w
    seconds: list[float] = []
    for _ in range(5):
        start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        start.record()
        x @ w
        end.record()
        end.synchronize()
        seconds.append(start.elapsed_time(end) / 1000)
    return statistics.median(seconds)
