"""Probes of lab 6's simulated plans: stages worth swapping, schedules, and treatments."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from peakmem.plan import chain
from peakmem.probes import Calls, Namespace, Outcomes, call_each

__all__ = ["plan_joint", "schedule", "worth_swapping"]


def worth_swapping(student: Namespace, calls: Calls) -> Outcomes:
    """Call `worth_swapping(stage, link_bytes_per_s, flops_per_s)` for each of `calls`.

    A call's stage is a dict here; the student gets an object with its items as attributes.
    """
    given = [(SimpleNamespace(**stage), *rates) for stage, *rates in calls]
    return call_each(student.worth_swapping, given)


def schedule(student: Namespace, calls: Calls, before: Calls = ()) -> Outcomes:
    """Call `schedule(stages, budget_bytes, link_bytes_per_s)` for each of `calls`.

    A call's stages are dicts here, and `Stage` objects to the student, as in the notebook. Calls in
    `before` come first; their results are left out.
    """

    def plan(*arguments: Any) -> Any:
        found = student.schedule(*arguments)
        return [_row(copy) for copy in found] if _is_list(found) else found

    call_each(plan, _as_in_the_notebook(before))
    return call_each(plan, _as_in_the_notebook(calls))


def plan_joint(student: Namespace, calls: Calls, before: Calls = ()) -> Outcomes:
    """Call `plan_joint(stages, budget_bytes, link_bytes_per_s)` for each of `calls`.

    A call's stages are dicts here, and `Stage` objects to the student, as in the notebook. Calls in
    `before` come first; their results are left out.
    """

    def plan(*arguments: Any) -> Any:
        found = student.plan_joint(*arguments)
        return [str(treatment) for treatment in found] if _is_list(found) else found

    call_each(plan, _as_in_the_notebook(before))
    return call_each(plan, _as_in_the_notebook(calls))


def _is_list(found: Any) -> bool:
    """Return whether a value is iterable like a list.

    If it isn't, the judge says so; iterating here would look like the student's own error.
    """
    return isinstance(found, Iterable) and not isinstance(found, str)


def _row(copy: Any) -> Any:
    return tuple(copy) if _is_list(copy) else copy


def _as_in_the_notebook(calls: Calls) -> Calls:
    """Return the calls with their stages as the notebook has them."""
    return [([chain.Stage(**stage) for stage in stages], *rest) for stages, *rest in calls]
