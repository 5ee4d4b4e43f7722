"""Probes of lab 10's counts: attention's cost, and the limit that binds."""

from __future__ import annotations

from typing import Any

from peakmem.probes import Calls, Namespace, Outcomes, call_each
from peakmem.specs.hardware import accelerator

__all__ = ["attention_cost", "roofline"]


def attention_cost(student: Namespace, calls: Calls) -> Outcomes:
    """Call `attention_cost` with all items of a call except the last, which is a block size.

    In the result, the value of `io_bytes_tiled(block)` replaces the function, which is called after
    another call of `attention_cost`, and after a call with another block.
    """

    def cost(*arguments: Any) -> Any:
        *of_attention, block = arguments
        found = student.attention_cost(*of_attention)
        student.attention_cost(1, 1, 1, 1, False, 1)
        found["io_bytes_tiled"](2 * block)
        return {**found, "io_bytes_tiled": found["io_bytes_tiled"](block)}

    return call_each(cost, calls)


def roofline(student: Namespace, calls: Calls) -> Outcomes:
    """Call `bound_by` or `least_seconds`: a call is (function, flops, bytes, board's name)."""

    def limit(function: str, flops: float, traffic: float, name: str) -> Any:
        return getattr(student, function)(flops, traffic, accelerator(name))

    return call_each(limit, calls)
