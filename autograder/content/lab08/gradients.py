"""Exercise: gradients that only their owner keeps, the second stage of ZeRO."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from autograder.content.lab08.forbidden import NO_WRAPPERS
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab08.gradients import RATE, chain, samples, uneven

__all__ = ["shard_gradients"]

_RIGHT, _MEMORY = "gradients", "memory"
_MIB = 2**20
_WORLD, _WIDTHS = 4, uneven(896)
_LAYER_BYTES = 4 * (_WIDTHS[0] ** 2 + _WIDTHS[0])  # of a large layer
_PARAMETER_BYTES = sum(4 * (before + 1) * after for before, after in pairwise(_WIDTHS))
_MOST_BYTES = _PARAMETER_BYTES // _WORLD + 2 * _LAYER_BYTES
_LATE_BYTES = _LAYER_BYTES  # torch's thread frees a reduced gradient slightly late
_SCRATCH_BYTES = _LAYER_BYTES + _MIB  # gloo sums in a copy; the rest is for Python and torch
_TOLERANCE = 1e-5
_VALUES = ("sums", "own", "nobody", "everybody")

Exchange = Callable[[list[Tensor], int], Tensor]  # all ranks' gradients, the owner -> its result


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(world: int) -> Case:
        widths = [int(n) for n in rng.integers(3, 9, 5)]
        sizes = {"world": world, "widths": widths, "steps": 2, "nested": True}
        return Case((_RIGHT,), {**sizes, "seed": int(rng.integers(2**31)), "metered": False})

    given = {"world": _WORLD, "widths": _WIDTHS, "steps": 1, "large": True}
    budget = Budget(_PARAMETER_BYTES + _MOST_BYTES + _SCRATCH_BYTES)
    large = Case((_MEMORY,), {**given, "seed": int(rng.integers(2**31))}, budget=budget)
    return [case(2), case(3), large]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    value = answer.value if isinstance(answer.value, dict) else {}
    finding = _values(case.inputs, value.get("ranks"))
    if finding.ok and case.budget:
        finding = _memory(answer)
    return dict.fromkeys(case.parts, finding)


def _values(inputs: Mapping[str, Any], ranks: Any) -> Finding:
    count = len(list(_chain(inputs).parameters()))
    if not _has_form(ranks, inputs["world"], inputs["steps"], count):
        return Finding(False, "The answers came back garbled.")
    keepers = [
        [sum(n in rank["has"][step] for rank in ranks) for n in range(count)]
        for step in range(inputs["steps"])
    ]
    for step, of_step in enumerate(keepers):
        for n, keeps in enumerate(of_step):
            if keeps != 1:
                said = f"After backward {step + 1}, {keeps} of {inputs['world']} ranks have the "
                mistake = "everybody" if keeps else "nobody"
                return Finding(False, f"{said}gradient of parameter {n}; one should.", (mistake,))
    large = bool(inputs.get("large"))
    if _arrives(inputs, ranks, lambda all_, owner: sum(all_[1:], all_[0]) / len(all_), large):
        return Finding(True)
    mutants: dict[str, Exchange] = {
        "sums": lambda all_, owner: sum(all_[1:], all_[0]),
        "own": lambda all_, owner: all_[owner],
    }
    known = tuple(name for name, of in mutants.items() if _arrives(inputs, ranks, of, large))
    said = (
        f"With {inputs['world']} ranks, updates with these gradients differ from a single "
        "process's."
    )
    return Finding(False, said, _VALUES if large else known, follows=large)


def _chain(inputs: Mapping[str, Any]) -> nn.Sequential:
    return chain(inputs["widths"], inputs["seed"], nested=inputs.get("nested", False))


def _has_form(ranks: Any, world: int, steps: int, count: int) -> TypeGuard[list[dict[str, Any]]]:
    return (
        isinstance(ranks, list)
        and len(ranks) == world
        and all(
            isinstance(rank, dict)
            and all(isinstance(rank.get(name), list) for name in ("has", "params"))
            and len(rank["has"]) == steps
            and all(isinstance(numbers, list) for numbers in rank["has"])
            and len(rank["params"]) == count
            for rank in ranks
        )
    )


def _arrives(
    inputs: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]], exchange: Exchange, large: bool
) -> bool:
    """Whether all ranks have the parameters that these gradients give."""
    model = _chain(inputs)
    params = list(model.parameters())
    for step in range(inputs["steps"]):
        by_rank: list[list[Tensor]] = []
        for rank in range(inputs["world"]):
            x = samples(inputs["widths"][0], step, rank, inputs["seed"])
            loss = model(x).square().sum(1).mean()
            by_rank.append(list(torch.autograd.grad(loss, params)))
        for n, p in enumerate(params):
            owner = next(r for r, rank in enumerate(ranks) if n in rank["has"][step])
            with torch.no_grad():
                p.sub_(exchange([gradients[n] for gradients in by_rank], owner), alpha=RATE)
    right = [p.sum().item() if large else p.detach().numpy() for p in params]
    return all(all(map(_are_close, right, rank["params"])) for rank in ranks)


def _are_close(right: Any, got: Any) -> bool:
    if isinstance(right, float):
        return isinstance(got, float) and abs(got - right) <= 1e-3 * max(1.0, abs(right))
    return (
        isinstance(got, np.ndarray)
        and got.dtype.kind == "f"
        and got.shape == right.shape
        and bool(np.allclose(got, right, 0, _TOLERANCE * max(1.0, float(np.abs(right).max()))))
    )


def _memory(answer: Answer) -> Finding:
    rise = answer.metered("rise_bytes")
    if not answer.breaks_budget(rise, _PARAMETER_BYTES + _MOST_BYTES + _LATE_BYTES):
        return Finding(True)
    took = (
        ""
        if rise is None
        else (f" Your gradients take {(rise - _PARAMETER_BYTES) / _MIB:.1f} MiB.")
    )
    said = (
        f"With {_PARAMETER_BYTES / _MIB:.0f} MiB of parameters and {_WORLD} ranks, gradients may "
        f"take {_MOST_BYTES / _MIB:.1f} MiB at once.{took}"
    )
    return Finding(False, said, ("freed_late",))


shard_gradients = Task(
    id="lab08-shard_gradients",
    parts={_RIGHT: 2, _MEMORY: 1},
    defines=("shard_gradients",),
    probe="shard_gradients",
    cases=_cases,
    judge=_judge,
    mistakes={
        "sums": "Your gradients are sums over ranks. Divide by the world size.",
        "own": "The owner has only its own gradient. Add up all ranks' gradients with dist.reduce.",
        "nobody": "No rank has kept a gradient. Its owner must keep it.",
        "everybody": "Several ranks keep the same gradient. All except its owner must set p.grad "
        "to None.",
        "freed_late": "Too many gradients are alive at once. Reduce each in a hook as soon as it's "
        "ready, and free it; choose owners by bytes, not by the number of layers.",
    },
    ban=NO_WRAPPERS,
    trust="measured",
    ranks=True,
    stretch=True,
    seconds=60.0,
)
