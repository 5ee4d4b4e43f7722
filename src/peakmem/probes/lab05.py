"""Probes of lab 5, gradient accumulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peakmem.errors import OutOfMemory
from peakmem.probes import Namespace

__all__ = ["largest_micro_batch"]


def largest_micro_batch(student: Namespace, upper: int, ask: Callable[[Any], Any]) -> Any:
    """Let the student search for the largest micro-batch; the grader decides what fits.

    Returns ("value", answer) or ("raised", type's name) of what `largest_micro_batch` did.
    """

    def run(m: int) -> None:
        reply = ask(m)
        if reply == "out of memory":
            raise OutOfMemory(f"{m} samples do not fit")
        if reply == "broken":
            raise ValueError(f"a micro-batch of {m} is not a case that this model can run")

    try:
        return ("value", student.largest_micro_batch(run, upper))
    except ValueError as error:
        return ("raised", type(error).__name__)
