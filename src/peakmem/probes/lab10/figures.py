"""Small figures of large runs for lab 10's probes: sums instead of tensors, and metered bytes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from peakmem.measure.meter import MemoryMeter
from peakmem.probes.kept import forget_objects, kept_bytes, objects_traced
from peakmem.probes.plain_tensor import plain_tensor

__all__ = ["kept_after", "metered_rise", "sums"]


def sums(tensor: Tensor) -> list[npt.NDArray[Any]]:
    """Return the sums along each of the last two axes: little data, but every element contributes.

    The elements are weighted, because the plain sum of a softmax's gradients is 0.
    """
    weights = torch.arange(tensor.numel(), dtype=torch.float64).cos_().view(tensor.shape)
    weighted = weights.mul_(plain_tensor(tensor))
    return [weighted.sum(axis).flatten().numpy() for axis in (-1, -2)]


def metered_rise(
    run: Callable[[], object], *inputs: Tensor, metered: bool, objects: bool = False
) -> dict[str, int]:
    """Call `run`; if `metered`, return `rise_bytes`, the rise of live bytes beyond the inputs.

    It counts bytes of tensors and numpy arrays, and with `objects` those of Python objects too.
    """
    if not metered:
        run()
        return {}
    meter = MemoryMeter("cpu", count_numpy=True, history=False).track(*inputs)
    with objects_traced() if objects else nullcontext(), meter:
        run()
    return {"rise_bytes": meter.rise_bytes + (meter.numpy_peak_bytes or 0)}


def kept_after(call: Callable[[], Tensor], *inputs: Tensor) -> tuple[int, Tensor]:
    """Return the bytes that `call` leaves live besides its result, and the result.

    The bytes are in tensors, in numpy arrays, and in large or very many Python objects, such as
    bytes. Take the smaller figure of two calls, because now and then one of Python's own dicts
    grows. Each call needs inputs of its own: what the first call keeps must not serve the second.
    """
    with objects_traced():
        forget_objects()
        with MemoryMeter("cpu", history=False).track(*inputs) as meter:
            output = call()
            return kept_bytes(meter, output), output
