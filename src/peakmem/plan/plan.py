"""A plan as data: what is computed, in which order, and what is copied meanwhile.

The operations are those of Beaumont et al. (2019), section 3.2, table 1, and copies over one link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from peakmem.core.errors import Infeasible
from peakmem.plan.chain import Chain

__all__ = ["Copy", "CopyKind", "Plan", "Step", "StepKind", "check_plan"]

StepKind = Literal["keep", "checkpoint", "drop", "backward"]
CopyKind = Literal["out", "in"]


class Step(NamedTuple):
    """One computation: a forward that keeps more or less, or a backward.

    "keep" runs a forward and keeps all that backward needs (Fall in the paper). "checkpoint" keeps
    the output only, and holds on to the input (Fck). "drop" does so too, and gives its input up
    (Fnone); the input must be an output that an earlier "checkpoint" or "drop" left.
    "backward" needs what a "keep" of the stage left, the stage's input, and the gradient of its
    output; it gives up all three.
    """

    kind: StepKind
    stage: int


class Copy(NamedTuple):
    """A copy of what a stage's "keep" left: "out" to the host, or "in" from there."""

    kind: CopyKind
    stage: int
    #: The number of the step that must be done first; -1 if the copy may start at once.
    after: int


@dataclass(frozen=True)
class Plan:
    """What to compute, in which order, and what to copy meanwhile.

    >>> Plan("one stage", (Step("keep", 0), Step("backward", 0))).copies
    ()
    """

    name: str
    steps: tuple[Step, ...]
    #: In the order in which the link makes them.
    copies: tuple[Copy, ...] = ()
    #: The speed of the link; a plan with copies needs one.
    link_bytes_per_s: float | None = None
    #: What would exceed it waits until a copy has made room; None for no bound.
    budget_bytes: int | None = None
    #: Whether a copy whose stage's backward is done is left out. If not, the link waits for it
    #: forever, and every copy after it does too.
    skips_late_copies: bool = True


def check_plan(chain: Chain, plan: Plan) -> None:
    """Check that a plan's steps, copies and bounds make sense for a chain.

    Raises ValueError if they don't, and Infeasible if the budget is below the chain's input.

    >>> from peakmem.plan.chain import Stage
    >>> check_plan(Chain((Stage(1, 2, 30, 10),)), Plan("two", (Step("keep", 1),)))
    Traceback (most recent call last):
        ...
    ValueError: Step(kind='keep', stage=1) is of a stage that is not one of 0 to 0
    """
    kinds: tuple[str, ...] = (*get_args(StepKind), *get_args(CopyKind))
    entries: list[Step | Copy] = [*plan.steps, *plan.copies]
    for entry in entries:
        if not 0 <= entry.stage < len(chain):
            raise ValueError(f"{entry} is of a stage that is not one of 0 to {len(chain) - 1}")
        if entry.kind not in kinds:
            raise ValueError(f"{entry} is of an unknown kind; known are {', '.join(kinds)}")
    if plan.copies and not (plan.link_bytes_per_s and plan.link_bytes_per_s > 0):
        raise ValueError(
            f"a plan with copies needs link_bytes_per_s above 0, but got {plan.link_bytes_per_s!r}"
        )
    if plan.budget_bytes is not None and chain.input_bytes > plan.budget_bytes:
        raise Infeasible(
            f"the chain's input alone takes {chain.input_bytes:,} bytes of a budget of "
            f"{plan.budget_bytes:,}"
        )
