"""Probes of lab 3's arithmetic: bytes of states, models and steps, from sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peakmem.probes import Namespace, call_each

__all__ = ["bytes_per_parameter", "largest_model", "peak_of_step", "state_bytes", "step_timeline"]

Calls = Sequence[Sequence[Any]]
Outcomes = list[tuple[Any, ...]]


def bytes_per_parameter(student: Namespace, calls: Calls) -> Outcomes:
    """Call `bytes_per_parameter(recipe)` for each of `calls`, as `call_each` does."""
    return call_each(student.bytes_per_parameter, calls)


def state_bytes(student: Namespace, calls: Calls) -> Outcomes:
    """Call `state_bytes(shapes, optimizer)` for each of `calls`."""
    return call_each(student.state_bytes, calls)


def largest_model(student: Namespace, calls: Calls) -> Outcomes:
    """Call `largest_model(recipe, budget_bytes, activation_bytes)` for each of `calls`."""
    return call_each(student.largest_model, calls)


def step_timeline(student: Namespace, calls: Calls) -> Outcomes:
    """Call `step_timeline(param_bytes, activation_bytes, events)` for each of `calls`."""
    return call_each(student.step_timeline, calls)


def peak_of_step(student: Namespace, calls: Calls) -> Outcomes:
    """Call `peak_of_step(shapes, activation_bytes, optimizer)` for each of `calls`."""
    return call_each(student.peak_of_step, calls)
