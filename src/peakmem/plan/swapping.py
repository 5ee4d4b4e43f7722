"""Lab 6's swap schedules, simulated: compute steps, one link to the host, and a budget.

A training step of n stages has 2n compute steps: forward 0 to n-1, then backward n-1 to 0. Between
its forward and its backward, a stage's saved tensors can wait on the host. A schedule lists the
link's copies in order; `simulate` plays it and returns how long everything takes.

A schedule follows the same rules as every other plan (`peakmem.plan.player`), with two
simplifications: no stage reads the saved tensors of the stage before, and a copy that comes too
late blocks the link.
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
    """A run of a schedule, simulated or real."""

    #: The end of the last compute step.
    makespan: float
    #: The most bytes in memory at once.
    peak_bytes: int
    #: Every compute step ("forward", "backward"), in order.
    steps: tuple[Span, ...]
    #: Every finished copy ("out", "in"), in order.
    copies: tuple[Span, ...]


def step_name(step: int, n_stages: int) -> str:
    """Return the kind and the stage of compute step number `step` as text.

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

    `stages` are `Stage` objects, or objects with its first three attributes. Compute steps run one
    at a time and in order, each as soon as it can. Forward i allocates the stage's saved_bytes when
    it starts. Backward i needs them on the device and frees them when it ends. The link makes one
    copy at a time, in the order of the list; each takes saved_bytes / link_bytes_per_s. "out" needs
    the bytes on the device, not in use, and frees them when it ends; "in" needs them on the host
    and allocates them when it starts. A copy starts once compute step `after` is done (-1: at
    once). A step or copy that would exceed the budget waits. If a step and a copy could start at
    the same time, the step goes first. Copies that haven't started when the last step ends never
    do.

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
    """Return a schedule as a plan. Raises ValueError if it is invalid."""
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
    """Return a simulation in a schedule's terms, where the only forward is one that saves."""
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
    """Return which step of a schedule waits forever, and what it and the link wait for."""
    kind, i = _step(player.steps_done, len(player.chain))
    if kind == "forward":
        why = (
            f"it needs {player.chain.stages[i].saved_bytes:,} bytes, and {player.used_bytes:,} of "
            f"the budget of {player.plan.budget_bytes or 0:,} are taken"
        )
    else:
        why = f"the tensors that stage {i} saved are on the host"
    return f"{kind} {i} waits forever from {player.clock.now:g} on: {why}; {_why_link_idle(player)}"


def _why_link_idle(player: Player) -> str:
    copy = player.next_copy()
    if copy is None:
        return "the list has no copy left to help"
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
            raise ValueError(f"{entry!r}: expected the kind 'out' or 'in', but got {kind!r}")
        if not 0 <= stage < n_stages:
            raise ValueError(
                f"{entry!r}: expected a stage from 0 to {n_stages - 1}, but got {stage}"
            )
        if not -1 <= after < 2 * n_stages:
            raise ValueError(
                f"{entry!r}: expected `after` to be -1 or a compute step from 0 to "
                f"{2 * n_stages - 1}, but got {after}"
            )
        checked.append(Copy(kind, stage, after))
    return tuple(checked)
