"""Swapping on paper: compute steps, one link to the host, a budget, and a clock.

A training step of n stages has 2n compute steps: forward 0 to n-1, then backward n-1 to 0. Between
its forward and its backward, what a stage saved can wait on the host. A schedule says which copies
the link makes, in which order; `simulate` plays it and says how long everything takes.

This is the game of lab 6. It is played by the rules of every other plan (`peakmem.plan.player`), on
stages of which the next one reads nothing, and with a link that waits for a copy that comes too
late.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from peakmem.core.errors import Infeasible
from peakmem.plan import simulator
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.plan import Copy, Plan, Step
from peakmem.plan.player import Player, Stuck
from peakmem.plan.simulator import Span

__all__ = ["Run", "Span", "Stage", "simulate", "step_name"]


@dataclass(frozen=True)
class Run:
    """What came of a schedule, played on paper or for real."""

    #: The end of the last compute step.
    makespan: float
    peak_bytes: int
    #: Every compute step ("forward", "backward"), in order.
    steps: tuple[Span, ...]
    #: Every copy ("out", "in") that ended, in order.
    copies: tuple[Span, ...]


def step_name(step: int, n_stages: int) -> str:
    """Return what compute step number `step` is.

    >>> step_name(1, 3), step_name(3, 3)
    ('forward 1', 'backward 2')
    """
    kind, stage = _step(step, n_stages)
    return f"{kind} {stage}"


def simulate(
    stages: Sequence[Any],
    budget_bytes: int,
    link_bytes_per_s: float,
    schedule: Iterable[Sequence[Any]],
) -> Run:
    """Play a schedule, a list of copies (kind, stage, after), and return the run.

    `stages` are of the class `Stage`, or have its first three attributes. Compute steps run one at
    a time and in order, each as soon as it can. Forward i takes the stage's saved_bytes as it
    starts. Backward i needs them on the device and frees them as it ends. The link makes one copy
    at a time, in the order of the list; each takes saved_bytes / link_bytes_per_s. "out" needs the
    bytes on the device, not in use, and frees them as it ends; "in" needs them on the host and
    takes them as it starts. A copy starts once compute step `after` is done (-1: at once). What
    would exceed the budget waits; where a step and a copy could start at the same time, the step
    goes first. Copies that have not started when the last step ends never do.

    Raises Infeasible if the steps never finish, ValueError if the schedule is invalid.

    >>> stages = [Stage(1, 2, 10), Stage(1, 2, 10)]
    >>> simulate(stages, 20, 10, []).makespan
    6.0
    >>> simulate(stages, 10, 10, [("out", 0, 0), ("in", 0, 2)]).makespan
    8.0
    """
    chain = Chain(tuple(Stage(s.forward_time, s.backward_time, s.saved_bytes) for s in stages))
    plan = plan_of(len(chain), budget_bytes, link_bytes_per_s, schedule)
    try:
        found = simulator.simulate(chain, plan)
    except Stuck as stuck:
        raise Infeasible(why_stuck(stuck.player)) from None
    return run_of(found)


def plan_of(
    n_stages: int, budget_bytes: int, link_bytes_per_s: float, schedule: Iterable[Sequence[Any]]
) -> Plan:
    """Return a schedule as the plan that it stands for; ValueError if it is invalid."""
    return Plan(
        name="schedule",
        steps=tuple(
            Step("keep" if kind == "forward" else "backward", stage)
            for kind, stage in (_step(number, n_stages) for number in range(2 * n_stages))
        ),
        copies=_copies(schedule, n_stages),
        link_bytes_per_s=link_bytes_per_s,
        budget_bytes=budget_bytes,
        skips_late_copies=False,
    )


def run_of(found: simulator.Simulation) -> Run:
    """Return a simulation in the words of a schedule: a forward that keeps all is the only one."""
    spans = [
        span._replace(kind={"keep": "forward"}.get(span.kind, span.kind)) for span in found.spans
    ]
    return Run(
        found.makespan,
        found.peak_bytes,
        steps=tuple(span for span in spans if span.kind in ("forward", "backward")),
        copies=tuple(span for span in spans if span.kind in ("out", "in")),
    )


def why_stuck(player: Player) -> str:
    """Return which step of a schedule waits for ever, and what it and the link wait for."""
    kind, i = _step(player.steps_done, len(player.chain))
    if kind == "forward":
        why = (
            f"it needs {player.chain.stages[i].saved_bytes:,} bytes, and {player.used_bytes:,} of "
            f"the budget of {player.plan.budget_bytes or 0:,} are taken"
        )
    else:
        why = f"what stage {i} saved is on the host"
    return (
        f"{kind} {i} waits for ever from {player.clock.now:g} on: {why}; {_why_link_idle(player)}"
    )


def _why_link_idle(player: Player) -> str:
    copy = player.next_copy()
    if copy is None:
        return "no copy is left in the list that would help"
    kind, i, after = copy
    if player.steps_done <= after:
        why = f"step {after}, {step_name(after, len(player.chain))}, is not done"
    elif kind == "in" and player.saved.get(i) == "host":
        why = f"there is no room for {player.chain.stages[i].saved_bytes:,} bytes"
    else:
        why = f"these bytes are not on the {'device' if kind == 'out' else 'host'}"
    return f"the next copy, ({kind!r}, {i}, {after}), cannot start: {why}"


def _step(step: int, n_stages: int) -> tuple[str, int]:
    return ("forward", step) if step < n_stages else ("backward", 2 * n_stages - 1 - step)


def _copies(schedule: Iterable[Sequence[Any]], n_stages: int) -> tuple[Copy, ...]:
    checked = []
    for entry in schedule:
        try:
            kind, stage, after = entry
            stage, after = int(stage), int(after)
        except (TypeError, ValueError):
            raise ValueError(
                f"expected each copy as (kind, stage, after), such as ('out', 0, 0), but got "
                f"{entry!r}"
            ) from None
        if kind not in ("out", "in"):
            raise ValueError(f"the kind of {entry!r} is neither 'out' nor 'in'")
        if not 0 <= stage < n_stages:
            raise ValueError(f"the stage of {entry!r} is not one of 0 to {n_stages - 1}")
        if not -1 <= after < 2 * n_stages:
            raise ValueError(
                f"`after` of {entry!r} is not -1 or a compute step, 0 to {2 * n_stages - 1}"
            )
        checked.append(Copy(kind, stage, after))
    return tuple(checked)
