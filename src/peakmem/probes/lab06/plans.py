"""Probes of lab 6's simulated plans: stages worth swapping, schedules, and treatments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from peakmem.probes import Namespace, call_each

__all__ = ["plan_joint", "schedule", "worth_swapping"]

Calls = Sequence[Sequence[Any]]
Outcomes = list[tuple[Any, ...]]


def worth_swapping(student: Namespace, calls: Calls) -> Outcomes:
    """Call `worth_swapping(stage, link_bytes_per_s, flops_per_s)` for each of `calls`.

    A call's stage is a dict here, and an object with these attributes to the student.
    """

    def decide(stage: Mapping[str, Any], *rates: float) -> Any:
        return student.worth_swapping(SimpleNamespace(**stage), *rates)

    return call_each(decide, calls)


def schedule(student: Namespace, calls: Calls) -> Outcomes:
    """Call `schedule(stages, budget_bytes, link_bytes_per_s)` for each of `calls`.

    A call's stages are dicts here, and objects with these attributes to the student.
    """

    def plan(stages: Sequence[Mapping[str, Any]], budget_bytes: int, link: float) -> Any:
        found = student.schedule([SimpleNamespace(**s) for s in stages], budget_bytes, link)
        return [tuple(copy) for copy in found]

    return call_each(plan, calls)


def plan_joint(student: Namespace, calls: Calls) -> Outcomes:
    """Call `plan_joint(stages, budget_bytes, link_bytes_per_s)` for each of `calls`.

    A call's stages are dicts here, and objects with these attributes to the student.
    """

    def plan(stages: Sequence[Mapping[str, Any]], budget_bytes: int, link: float) -> Any:
        found = student.plan_joint([SimpleNamespace(**s) for s in stages], budget_bytes, link)
        return [str(treatment) for treatment in found]

    return call_each(plan, calls)
