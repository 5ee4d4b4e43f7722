"""Probes of lab 5, gradient accumulation."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from peakmem.errors import OutOfMemory
from peakmem.probes import Namespace

__all__ = ["largest_micro_batch"]


def largest_micro_batch(student: Namespace, upper: int, ask: Callable[[Any], Any]) -> Any:
    """Let the student search for the largest micro-batch; the grader decides what fits.

    Returns ("value", answer), or ("raised", "ValueError") where a run raised that error and
    `largest_micro_batch` let it pass.
    """
    broken = False

    def run(m: int) -> None:
        nonlocal broken
        reply = ask(operator.index(m))  # a TypeError for 2.5: half a sample cannot be run
        if reply == "out of memory":
            raise OutOfMemory(f"{m} samples do not fit")
        if reply == "broken":
            broken = True
            raise ValueError(f"this model has a bug, which shows with {m} samples")

    try:
        return ("value", student.largest_micro_batch(run, upper))
    except ValueError:
        if not broken:
            raise
        return ("raised", "ValueError")
