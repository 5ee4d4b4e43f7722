"""Runs a probe's work with the meter or without it, and returns the meter's figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peakmem.probes import earlier_objects_set_aside

__all__ = ["rise_of", "with_rises"]


def rise_of(work: Callable[[], object], *inputs: Any, metered: bool) -> dict[str, int]:
    """Call `work`; if `metered`, return `rise_bytes`, the rise of live bytes beyond the inputs."""
    if not metered:
        work()
        return {}
    from peakmem.measure.meter import MemoryMeter  # late, so that other probes don't load torch

    with MemoryMeter("cpu", history=False).track(*inputs) as meter:
        work()
    return {"rise_bytes": meter.rise_bytes}


def with_rises(work: Callable[[], dict[str, Any]], *, metered: bool) -> dict[str, Any]:
    """Return the dict of `work()`, and if `metered` its peaks, which include its inputs.

    These are `rise_bytes` of tensors and `numpy_rise_bytes`.
    """
    if not metered:
        return work()
    from peakmem.measure.meter import MemoryMeter

    meter = MemoryMeter("cpu", count_numpy=True, history=False)
    with earlier_objects_set_aside(), meter:
        found = work()
    return {**found, "rise_bytes": meter.rise_bytes, "numpy_rise_bytes": meter.numpy_peak_bytes}
