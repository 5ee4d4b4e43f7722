"""Lab 1's leak: the memory that keeping halves of tensors takes, for 16 tensors of 1 MiB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peakmem.labs.self_check import beside_bound
from peakmem.probes import Namespace
from peakmem.probes.lab01 import find_the_leak, halves_bound, keep_halves

__all__ = ["halves_of_three", "halves_peak", "halves_rise"]

_HALVES = {"count": 16, "numbers": 2**18, "seed": 1}


def halves_of_three(function: Callable[..., Any]) -> dict[str, Any]:
    """Return what `function(load, count)` makes of three small tensors."""
    return keep_halves(function, count=3, numbers=5, seed=1)


def halves_rise(function: Callable[..., Any]) -> int:
    """Return the bytes that `function(load, count)` takes at its peak, on 16 tensors of 1 MiB."""
    answer = find_the_leak(Namespace({"upper_halves": function}), metered=True, **_HALVES)
    return int(answer["rise_bytes"] + answer["numpy_rise_bytes"])


def halves_peak(function: Callable[..., Any]) -> str:
    """Return how the peak on 16 tensors of 1 MiB compares with the bound of exercise 1.8."""
    return beside_bound(halves_rise(function), halves_bound(_HALVES))
