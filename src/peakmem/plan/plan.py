"""Plans as data: the computations in order, and the copies that run beside them.

The computations are those of Beaumont et al. (2019), section 3.2, table 1; all copies share one
link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from peakmem.core.errors import Infeasible
from peakmem.plan.chain import Chain

__all__ = ["Copy", "CopyKind", "Plan", "Step", "StepKind", "check_plan", "infeasible"]

StepKind = Literal["keep", "checkpoint", "drop", "backward"]
CopyKind = Literal["out", "in"]


class Step(NamedTuple):
    """One computation: a forward that saves more or less, or a backward.

    "keep" runs a forward and saves all that backward needs (Fall in the paper). "checkpoint" keeps
    only the output, and holds on to the input (Fck). "drop" keeps only the output too, and frees
    the input (Fnone), which must be the output of an earlier "checkpoint" or "drop". "backward"
    needs the stage's saved tensors, its input and the gradient of its output, and frees all three.
    """

    kind: StepKind
    stage: int


class Copy(NamedTuple):
    """A copy of a stage's saved tensors: "out" to the host, or "in" from there."""

    kind: CopyKind
    stage: int
    #: The number of the step that must be done first; -1 to start at once.
    after: int


@dataclass(frozen=True)
class Plan:
    """The computations in order, and the copies that run beside them.

    >>> Plan("one stage", (Step("keep", 0), Step("backward", 0))).copies
    ()
    """

    #: The plan's name in tables and plots.
    name: str
    #: The computations, in order.
    steps: tuple[Step, ...]
    #: In the link's order.
    copies: tuple[Copy, ...] = ()
    #: The link's speed, in bytes per unit of the chain's times; required if there are copies.
    link_bytes_per_s: float | None = None
    #: A step that would exceed this waits until a copy has made room; None for no limit.
    budget_bytes: int | None = None
    #: Whether the link skips a copy whose stage has finished backward. If False, that copy blocks
    #: the link for good.
    skips_late_copies: bool = True


def check_plan(chain: Chain, plan: Plan) -> None:
    """Check that a plan's steps, copies and limits are valid for a chain.

    Raises ValueError if they aren't, and Infeasible if the budget is below the chain's input.

    >>> from peakmem.plan.chain import Stage
    >>> check_plan(Chain((Stage(1, 2, 30, 10),)), Plan("two", (Step("keep", 1),)))
    Traceback (most recent call last):
        ...
    ValueError: Step(kind='keep', stage=1): expected a stage from 0 to 0, but got 1
    """
    kinds: tuple[str, ...] = (*get_args(StepKind), *get_args(CopyKind))
    entries: list[Step | Copy] = [*plan.steps, *plan.copies]
    for entry in entries:
        if not 0 <= entry.stage < len(chain):
            raise ValueError(
                f"{entry}: expected a stage from 0 to {len(chain) - 1}, but got {entry.stage}"
            )
        if entry.kind not in kinds:
            raise ValueError(f"{entry}: the kind is unknown; use one of {', '.join(kinds)}")
    if plan.copies and not (plan.link_bytes_per_s and plan.link_bytes_per_s > 0):
        raise ValueError(
            f"a plan with copies needs link_bytes_per_s above 0, but got {plan.link_bytes_per_s!r}"
        )
    if plan.budget_bytes is not None and chain.input_bytes > plan.budget_bytes:
        raise Infeasible(
            f"the chain's input alone takes {chain.input_bytes:,} bytes of a budget of "
            f"{plan.budget_bytes:,}"
        )


def infeasible(means: str, budget_bytes: int, least_bytes: int | None) -> Infeasible:
    """Return the error for a budget that plans with these `means` can't keep.

    >>> infeasible("swaps", 10, 30).least_budget_bytes
    30
    """
    return Infeasible(
        f"no plan with {means} fits into {budget_bytes:,} bytes; the smallest budget that works is "
        f"{least_bytes or 0:,} bytes",
        least_budget_bytes=least_bytes,
    )
