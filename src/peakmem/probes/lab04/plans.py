"""Probes of lab 4's rules and plans, and the lab's chain of unequal stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from peakmem.probes import Calls, Namespace, Outcomes, call_each

__all__ = ["KEPT_SET_OPTIMUM", "NESTED_OPTIMUM", "UNEQUAL_STAGES", "plan", "sqrt_rule"]

# The lab's chain of unequal stages, like those of a network that halves its images. For each stage:
# (forward time in some unit, MiB saved, MiB of its output).
# fmt: off
UNEQUAL_STAGES = (
    (4, 128, 64), (9, 192, 64), (9, 192, 64),
    (6, 80, 16), (8, 96, 32), (8, 96, 32), (8, 96, 32),
    (6, 40, 8), (8, 48, 16), (8, 48, 16), (8, 48, 16),
    (6, 20, 4), (8, 24, 8), (8, 24, 8), (8, 24, 8), (2, 2, 1),
)
# fmt: on
# The least time by budget, as (MiB, time): from that budget on, a plan of that time fits. The first
# table is for one level of segments, as in the exercise, the second for nested segments. They have
# only times, because students have to find out which outputs to keep.
# fmt: off
KEPT_SET_OPTIMUM = (
    (320, 218), (324, 210), (328, 196), (336, 180), (358, 172), (390, 166), (486, 158),
    (566, 150), (592, 142), (710, 136), (902, 127), (1094, 118), (1158, 114),
)
NESTED_OPTIMUM = (
    (256, 206), (278, 201), (294, 198), (318, 193), (320, 189), (326, 188), (328, 187),
    (336, 179), (342, 178), (358, 172), (390, 166), (422, 164), (470, 162), (486, 158),
    (518, 156), (528, 154), (550, 152), (566, 150), (582, 146), (592, 142), (710, 136),
    (838, 132), (902, 127), (1030, 123), (1094, 118), (1158, 114),
)
# fmt: on


@dataclass(frozen=True)
class _Stage:
    """A stage as in the notebook's self-check: hashable, so that plans can be cached by it."""

    forward_time: float
    saved_bytes: int
    output_bytes: int


def sqrt_rule(student: Namespace, calls: Calls) -> Outcomes:
    """Call the function that each of `calls` names, with the rest of the call as arguments."""
    return call_each(lambda name, *arguments: getattr(student, name)(*arguments), calls)


def plan(student: Namespace, calls: Calls) -> Outcomes:
    """Call `plan(stages, budget_bytes)`; a call is (forward_times, saved, outputs, budget).

    Subclasses of ValueError are returned as ValueError. Changing the stages counts as an error.
    """

    def planned(times: list[Any], saved: list[int], outputs: list[int], budget: int) -> Any:
        stages = [_Stage(*row) for row in zip(times, saved, outputs, strict=True)]
        given = list(stages)
        try:
            kept = student.plan(given, budget)
        except ValueError as error:
            raise ValueError(str(error)) from error
        if given != stages:
            raise RuntimeError("your plan changed the stages it was given")
        return kept

    return call_each(planned, calls)
