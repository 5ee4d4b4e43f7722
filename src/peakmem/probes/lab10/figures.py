"""Small figures of large runs for lab 10's probes: sums instead of tensors, and metered bytes."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from peakmem.measure import meter as meter_module
from peakmem.measure.meter import MemoryMeter
from peakmem.probes.plain_tensor import plain_tensor

__all__ = ["kept_after", "metered_rise", "sums"]

_LARGE_BYTES = 4096  # of a Python object; smaller ones mostly belong to the autograd graph
#: Smaller objects count only beyond this total, to catch data cut into many of them: correct
#: answers leave up to 40 KB.
_SMALL_BYTES = 80 * 1024
#: The meter's objects don't count: its own, and its entries in weakref's list of finalizers.
_NOT_THE_METERS = tuple(
    tracemalloc.Filter(False, pattern)
    for pattern in (f"{Path(meter_module.__file__).parent}/*", weakref.__file__)
)


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
    with _objects_traced() if objects else nullcontext(), meter:
        run()
    of_tensors = meter.peak_bytes - meter.baseline_bytes
    return {"rise_bytes": of_tensors + (meter.numpy_peak_bytes or 0)}


def kept_after(call: Callable[[], Tensor], *inputs: Tensor) -> tuple[int, Tensor]:
    """Return the bytes that `call` leaves live besides its result, and the result.

    The bytes are in tensors, in numpy arrays, and in large or very many Python objects, such as
    bytes. `call` runs twice and the smaller figure counts, because now and then one of Python's own
    dicts grows.
    """
    with _objects_traced():
        found = [_kept_after_one(call, *inputs) for _ in range(2)]
    return min(found, key=lambda bytes_and_output: bytes_and_output[0])


def _kept_after_one(call: Callable[[], Tensor], *inputs: Tensor) -> tuple[int, Tensor]:
    tracemalloc.clear_traces()  # freed objects must not offset what the call keeps
    with MemoryMeter("cpu", history=False).track(*inputs) as meter:
        output = call()
        gc.collect(1)  # garbage in cycles isn't kept
    of_tensors = meter.live_bytes - meter.baseline_bytes - plain_tensor(output).nbytes
    traces = tracemalloc.take_snapshot().filter_traces(_NOT_THE_METERS).traces
    large = sum(one.size for one in traces if one.size >= _LARGE_BYTES)
    small = sum(one.size for one in traces if one.size < _LARGE_BYTES)
    return of_tensors + large + max(0, small - _SMALL_BYTES), output


@contextmanager
def _objects_traced() -> Iterator[None]:
    """Let tracemalloc trace Python objects while the block runs."""
    mine = not tracemalloc.is_tracing()
    if mine:
        tracemalloc.start()
    try:
        yield
    finally:
        if mine:
            tracemalloc.stop()
