"""Exercise: an epoch of updates, each from several micro-batches, with clipping and a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.content.lab05.epoch import MUTANTS, norm, simulate
from autograder.content.lab05.gradients import (
    KEEPS_GRAPHS,
    Array,
    close,
    gradients_in,
    graphs_kept,
)
from autograder.model.compare import show
from autograder.model.task import Answer, Case, Finding, Task

__all__ = ["train_epoch"]

_UPDATES, _LEFT, _CLIP = "updates and gradients", "leftovers", "clipping and scheduler"
_TOLERANCE = 1e-4  # relative to the largest gradient: clipping divides by the norm plus 1e-6


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(
        part: str,
        count: int,
        steps: int,
        *,
        clip: float | None = None,
        lr_factor: float | None = None,
        begins_anew: bool = False,
        more: bool = False,
        fixed: bool = False,
    ) -> Case:
        inputs: dict[str, Any] = {
            "weights": [rng.normal(size=shape) / 2 for shape in ((5, 4), (2, 5))],
            "batches": [_batch(rng, number, more) for number in range(count)],
            "accumulation_steps": steps,
            "lr": 0.02,
            "max_norm": None,
            "lr_factor": lr_factor,
        }
        if clip is not None:
            norms = [norm(g) for g in simulate(inputs)["gradients"]]
            inputs["max_norm"] = clip * float(np.median(norms))
        if begins_anew:
            inputs["begins_anew"] = True
        return Case((part,), inputs, fixed=fixed)

    steps, groups = int(rng.integers(3, 5)), int(rng.integers(2, 4))
    return [
        case(_UPDATES, steps * groups, steps, more=True),
        case(_UPDATES, 3, 1, fixed=True),
        case(_UPDATES, steps * groups, steps, begins_anew=True),
        case(_LEFT, steps * groups + steps - 1, steps),
        case(_LEFT, 2, 5),
        case(_LEFT, 0, 3, fixed=True),
        case(_LEFT, steps * groups + 1, steps, clip=0.3, lr_factor=0.5),
        case(_CLIP, steps * groups, steps, clip=0.3, lr_factor=0.5),
        case(_CLIP, steps * groups, steps, clip=10.0),
        case(_CLIP, steps * groups, steps, clip=0.0),
        case(_CLIP, steps * groups, steps, lr_factor=0.7),
        case(_CLIP, 2 * steps, steps, clip=0.6, fixed=True),
    ]


def _batch(rng: np.random.Generator, number: int, more: bool) -> list[Array]:
    """A batch; targets drift from batch to batch, so that no two batches have the same gradient.

    With `more`, the model takes a third argument: a batch needn't be a pair.
    """
    pair = [rng.normal(size=(3, 4)), rng.normal(size=(3, 2)) + number % 3]
    return [*pair, rng.normal(size=(3, 2))] if more else pair


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    value = answer.value if isinstance(answer.value, dict) else {}
    right = simulate(case.inputs)
    if _UPDATES in case.parts and (fault := graphs_kept(value)) is not None:
        return dict.fromkeys(case.parts, fault)
    said = _difference(right, value)
    if not said and not _seen(right, value):
        return dict.fromkeys(case.parts, Finding(False, doubt=_UNSEEN))
    if not said or _wrong_before_left_overs(case, right, value):
        return dict.fromkeys(case.parts, Finding(True))
    names = [mutant for mutant in MUTANTS if not _difference(simulate(case.inputs, mutant), value)]
    names += ["begins_anew"] if case.inputs.get("begins_anew") else []
    given = ", ".join(
        f"{name}={case.inputs[name]:.4g}"
        for name in ("accumulation_steps", "max_norm")
        if case.inputs[name] is not None
    )
    said = f"With {len(case.inputs['batches'])} micro-batches and {given}: {said}"
    return dict.fromkeys(case.parts, Finding(False, said, tuple(names)))


def _seen(right: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Tell whether the model was seen to run at least once for each micro-batch."""
    return type(value.get("forwards")) is int and value["forwards"] >= right["forwards"]


def _wrong_before_left_overs(
    case: Case, right: Mapping[str, Any], value: Mapping[str, Any]
) -> bool:
    """Tell whether clipping or the schedule is wrong even before the leftover micro-batches.

    Such a mistake costs only its own part, not the part for leftovers too.
    """
    if case.inputs["max_norm"] is None or case.parts != (_LEFT,):
        return False
    full = len(case.inputs["batches"]) // case.inputs["accumulation_steps"]
    noted = full * len(right["events"]) // len(right["gradients"])

    def first(run: Mapping[str, Any]) -> dict[str, Any]:
        known = {"events": run["events"][:noted], "gradients": run["gradients"][:full]}
        return {**right, **known}

    lists = all(isinstance(value.get(name), list) for name in ("events", "gradients"))
    return lists and bool(_difference(first(right), first(value)))


def _difference(right: Mapping[str, Any], value: Mapping[str, Any]) -> str:
    """A sentence on what differs; empty if nothing does."""
    events, gradients = value.get("events"), value.get("gradients")
    if not (isinstance(events, list) and isinstance(gradients, list)):
        return "the answers came back garbled."
    updates, count = (_words(found).count("update") for found in (events, right["events"]))
    if updates != count:
        return f"expected {count} updates, but there were {updates}."
    if _words(events) != right["events"]:
        return f"expected {_order(right['events'])}, but it was {_order(events)}."
    if len(gradients) != len(right["gradients"]):
        return (
            f"expected gradients in {len(right['gradients'])} updates, but there were "
            f"{len(gradients)}."
        )
    for number, (expected, got) in enumerate(zip(right["gradients"], gradients, strict=True), 1):
        known = [e for e in expected if e is not None]
        found = gradients_in(got, known) if known else got
        if found is None or (known and not close(found, known, _TOLERANCE)):
            mean = "clipped mean" if right["clips"] else "mean"
            return f"update {number}'s gradient isn't the {mean} over its micro-batches."
    if type(value.get("value")) is not int or value["value"] != right["value"]:
        return (
            f"expected your function to return {right['value']}, but got "
            f"{show(value.get('value'))}."
        )
    if value.get("clean") is not right["clean"]:
        return "gradients are left at the end."
    return ""


_UNSEEN = (
    "The grader saw your model run on fewer micro-batches than there are, so its counts mean "
    "nothing: call model(*batch) itself, not its layers. An instructor will look at this."
)


def _words(events: list[Any]) -> list[str]:
    return [str(event) for event in events]


def _order(events: list[Any]) -> str:
    return show(_words(events))


train_epoch = Task(
    id="lab05-train_epoch",
    parts={_UPDATES: 2, _LEFT: 1, _CLIP: 1},
    defines=("train_epoch",),
    probe="train_epoch",
    cases=_cases,
    judge=_judge,
    mistakes={
        "no_division": "Your gradient is the sum over an update's micro-batches. Divide each loss "
        "by their number before backward.",
        "last_group_as_full": "Your last group is short, but you divide by accumulation_steps. "
        "Divide by the group's number of micro-batches.",
        "drops_last_group": "You make no update for leftover micro-batches at the end. Make one "
        "more update with them.",
        "never_clears": "One update's gradients are still there in the next update. Clear them "
        "after each update.",
        "clears_each": "You clear gradients for each micro-batch, so an update sees only the last "
        "micro-batch's gradients. Clear them once per update.",
        "updates_each": "Your optimizer steps after each micro-batch. Step it once every "
        "accumulation_steps micro-batches.",
        "one_update_too_many": "You make an update for leftover micro-batches when there are none.",
        "clips_each": "You clip after each backward, which clips only part of the gradient. Clip "
        "once, just before the update.",
        "always_scales": "You scale the gradient to max_norm even when its norm is smaller. "
        "Clipping only ever shortens.",
        "clips_per_group": "You clip each parameter or parameter group separately. max_norm "
        "limits the norm over all parameters: clip once, with model.parameters().",
        "takes_zero_for_none": "With max_norm=0.0 you don't clip. Zero is falsy, but it is a "
        "valid limit: compare with None, `if max_norm is not None`.",
        "never_clips": "max_norm has no effect on the gradients that the optimizer sees. Clip "
        "before the optimizer's step, not after it.",
        "schedules_each": "Your scheduler steps with each micro-batch. Step it once per update.",
        "never_schedules": "Your scheduler never steps. Step it once after each update.",
        "dirty_at_the_end": "Gradients are left after the last update. Clear them after each "
        "update.",
        "counts_micro_batches": "You return the number of micro-batches. Return the number of "
        "updates.",
        "evaluation_mode": "You train in evaluation mode, where dropout and batch norm don't act "
        "as in training. Leave the model's mode alone: don't call eval() here.",
        "keeps_graphs": KEEPS_GRAPHS,
        "begins_anew": "If the loader starts over in each loop, as a DataLoader does, your updates "
        "are wrong. Loop over it once, or call iter(loader) once and take all batches from that.",
    },
)
