"""Probes of lab 6's simulated plans: stages worth swapping, schedules, and treatments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from peakmem.plan import chain
from peakmem.probes import Namespace, as_object, call_each

__all__ = ["plan_joint", "schedule", "worth_swapping"]

Calls = Sequence[Sequence[Any]]
Outcomes = list[tuple[Any, ...]]
Stage = Mapping[str, Any]


def worth_swapping(student: Namespace, calls: Calls) -> Outcomes:
    """Call `worth_swapping(stage, link_bytes_per_s, flops_per_s)` for each of `calls`.

    A call's stage is a dict here, and an object with these attributes to the student.
    """

    def decide(stage: dict[str, Any], *rates: float) -> Any:
        with as_object(stage) as given:
            return student.worth_swapping(given, *rates)

    return call_each(decide, calls)


def schedule(student: Namespace, calls: Calls, before: Calls = ()) -> Outcomes:
    """Call `schedule(stages, budget_bytes, link_bytes_per_s)` for each of `calls`.

    A call's stages are dicts here, and `Stage` objects to the student, as in the notebook. Calls in
    `before` come first; their results are left out.
    """

    def plan(stages: list[Stage], budget_bytes: int, link: float) -> Any:
        with _as_objects(stages) as given:
            found = student.schedule(given, budget_bytes, link)
        return [_row(copy) for copy in found] if _is_list(found) else found

    call_each(plan, before)
    return call_each(plan, calls)


def plan_joint(student: Namespace, calls: Calls, before: Calls = ()) -> Outcomes:
    """Call `plan_joint(stages, budget_bytes, link_bytes_per_s)` for each of `calls`.

    A call's stages are dicts here, and `Stage` objects to the student, as in the notebook. Calls in
    `before` come first; their results are left out.
    """

    def plan(stages: list[Stage], budget_bytes: int, link: float) -> Any:
        with _as_objects(stages) as given:
            found = student.plan_joint(given, budget_bytes, link)
        return [str(treatment) for treatment in found] if _is_list(found) else found

    call_each(plan, before)
    return call_each(plan, calls)


def _is_list(found: Any) -> bool:
    """Return whether a value is iterable like a list.

    If not, the judge names it. To iterate here would look like an error of the student's function.
    """
    return isinstance(found, Iterable) and not isinstance(found, str)


def _row(copy: Any) -> Any:
    return tuple(copy) if _is_list(copy) else copy


@contextmanager
def _as_objects(stages: list[Stage]) -> Iterator[list[chain.Stage]]:
    """Give the stages as the notebook has them; if the block changes the list, so is `stages`."""
    given = [chain.Stage(**stage) for stage in stages]
    before = list(given)
    yield given
    if given != before:
        stages.clear()  # `call_each` says that an argument has changed, not how
