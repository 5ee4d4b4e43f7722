"""Counts the bytes that a call leaves live: in tensors, in numpy arrays and in Python objects."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import Tensor

from peakmem.measure import meter as meter_module
from peakmem.measure.meter import MemoryMeter
from peakmem.probes.plain_tensor import plain_tensor

__all__ = ["forget_objects", "kept_bytes", "objects_traced"]

_LARGE_BYTES = 4096  # of a Python object; smaller ones are mostly the autograd graph's own
#: Smaller ones count beyond this, so that data cut into many of them does: correct answers leave up
#: to 40 KB.
_SMALL_BYTES = 80 * 1024
#: The meter's objects don't count: its own, and its entries in weakref's list of finalizers.
_NOT_THE_METERS = tuple(
    tracemalloc.Filter(False, pattern)
    for pattern in (f"{Path(meter_module.__file__).parent}/*", weakref.__file__)
)


@contextmanager
def objects_traced() -> Iterator[None]:
    """Let tracemalloc trace Python objects and numpy arrays while the block runs."""
    mine = not tracemalloc.is_tracing()
    if mine:
        tracemalloc.start()
    try:
        yield
    finally:
        if mine:
            tracemalloc.stop()


def forget_objects() -> None:
    """Start counting objects anew: what a call replaces must not make up for what it keeps."""
    tracemalloc.clear_traces()


def kept_bytes(meter: MemoryMeter, output: Tensor) -> int:
    """Return the bytes live since `meter` started and `forget_objects`, without `output`'s.

    Call this in the meter's block, within `objects_traced`. Large or very many Python objects
    count. Now and then a dict of Python's own grows, so take the smaller figure of two calls.
    """
    gc.collect(1)  # garbage in cycles isn't kept
    of_tensors = meter.live_bytes - meter.baseline_bytes - plain_tensor(output).nbytes
    traces = tracemalloc.take_snapshot().filter_traces(_NOT_THE_METERS).traces
    large = sum(one.size for one in traces if one.size >= _LARGE_BYTES)
    small = sum(one.size for one in traces if one.size < _LARGE_BYTES)
    return of_tensors + large + max(0, small - _SMALL_BYTES)
