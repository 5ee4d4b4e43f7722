"""Exercise: SGD that keeps float32 masters of 16-bit weights, so that small updates add up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from autograder.content.lab07.masters import MUTANTS, MasterWeights
from autograder.model.compare import show
from autograder.model.restrictions import Ban
from autograder.model.task import Answer, Case, Finding, Task
from peakmem.probes import Namespace
from peakmem.probes import lab07 as probes

__all__ = ["AUTOCASTS", "NO_AMP", "master_weights"]

_SMALL, _LOW, _FIRST = "small updates survive", "low copy", "first load and None"
_SHAPES = ((2, 3), (5,), (5,), (1,))
_EXACT_LR = 2.0**-3  # products with it are exact in 16 bits, so either dtype will do

# What torch.autocast calls; `torch` offers it too.
AUTOCASTS = frozenset(
    {"autocast_increment_nesting", "set_autocast_dtype", "set_autocast_enabled"}
    | {f"set_autocast_{where}_{what}" for where in ("cpu", "gpu") for what in ("dtype", "enabled")}
)

NO_AMP = Ban(
    names=frozenset({"GradScaler", "autocast", *AUTOCASTS}),
    modules=frozenset({"torch.amp", "torch.autocast", "torch.cuda.amp"}),
    reason="This exercise asks you to write mixed precision yourself: use tensors and .to(dtype), "
    "not torch.amp or torch.autocast.",
)


def _cases(rng: np.random.Generator) -> list[Case]:
    return [
        *(_tiny_steps(rng, dtype) for dtype in ("float16", "bfloat16")),
        *(_plain_steps(rng, dtype) for dtype in ("float16", "bfloat16", None)),
        _first(rng),
    ]


def _weights(rng: np.random.Generator) -> list[npt.NDArray[np.float32]]:
    return [
        (rng.choice([-1, 1], shape) * rng.uniform(1.0, 2.0, shape)).astype(np.float32)
        for shape in _SHAPES
    ]


def _tiny_steps(rng: np.random.Generator, dtype: str) -> Case:
    """Each update is at most a tenth of half a gap; 40 of them add up to several gaps."""
    # lr times such a gradient is a float16 subnormal, so a product in 16 bits shows too.
    size, lr = (0.02, 2.0**-10) if dtype == "float16" else (0.16, 2.0**-10)
    gradients = [rng.choice([-1, 1], shape) * rng.uniform(1, 2, shape) * size for shape in _SHAPES]
    rows = [[g.astype(np.float32) for g in gradients]] * 40
    inputs = {"tensors": _weights(rng), "gradients": rows, "lr": lr * 1.37, "dtype": dtype}
    return Case((_SMALL,), inputs)


def _plain_steps(rng: np.random.Generator, dtype: str | None) -> Case:
    rows = [[rng.standard_normal(s).astype(np.float32) for s in _SHAPES] for _ in range(4)]
    inputs = {"tensors": _weights(rng), "gradients": rows, "lr": _EXACT_LR, "dtype": dtype}
    return Case((_LOW,), inputs)


def _first(rng: np.random.Generator) -> Case:
    rows: list[list[Any]] = [
        [rng.standard_normal(s).astype(np.float32) for s in _SHAPES] for _ in range(3)
    ]
    rows[0][0] = rows[1][1] = rows[2][0] = None
    inputs = {"tensors": _weights(rng), "gradients": rows, "lr": _EXACT_LR, "dtype": "float16"}
    return Case((_FIRST,), {**inputs, "beside": True})


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    (part,) = case.parts
    return {part: _finding(part, case, answer.value)}


def _finding(part: str, case: Case, value: Any) -> Finding:
    if not _readable(case, value):
        return Finding(False, "The masters and params came back garbled.")
    said = _complaint(part, case, _run(MasterWeights, case), value)
    if not said:
        return Finding(True)
    alike = (name for name, mutant in MUTANTS.items() if _alike(_run(mutant, case), value))
    return Finding(False, said, tuple(alike))


def _run(weights: type, case: Case) -> dict[str, Any]:
    return probes.master_weights(Namespace({"MasterWeights": weights}), **case.inputs)


def _complaint(part: str, case: Case, right: Mapping[str, Any], got: Mapping[str, Any]) -> str:
    dtype = case.inputs["dtype"] or "float16"
    if not all(got["forms"]):
        when = _when(got["forms"].index(False), len(case.inputs["gradients"]))
        return (
            f"In {dtype}, {when}: expected float32 masters, and params that are leaves in {dtype} "
            "with requires_grad."
        )
    if part == _FIRST and got["changed"]:
        return "Your class changed the tensors passed to load."
    if not got["records"]:
        return "After your step, torch no longer records gradients. Use `with torch.no_grad():`."
    for index, (expected, found) in enumerate(zip(right["steps"], got["steps"], strict=True)):
        when = _when(index, len(right["steps"]) - 1)
        for name in ("masters", "params"):
            if not _close(name, expected[name], found[name], dtype):
                return f"In {dtype}, {when}: {_differ(name, expected[name], found[name])}."
        if part != _SMALL and not _is_rounded(found, dtype):
            return f"In {dtype}, {when}: the params are not your masters rounded to {dtype}."
    return ""


def _when(step: int, steps: int) -> str:
    return f"after step {step} of {steps}" if step else "after load"


def _differ(name: str, expected: list[Any], found: list[Any]) -> str:
    values = zip(np.concatenate([e.ravel() for e in expected]), _flat(found), strict=True)
    one, other = next((e, f) for e, f in values if not np.isclose(e, f, rtol=2e-7, atol=1e-9))
    return f"expected {show(float(one))} among the {name}, but got {show(float(other))}"


def _flat(arrays: list[Any]) -> npt.NDArray[Any]:
    flat: npt.NDArray[Any] = np.concatenate([array.ravel() for array in arrays])
    return flat


def _close(name: str, expected: list[Any], found: list[Any], dtype: str) -> bool:
    """Equal up to rounding: masters that differ by rounding may have neighbouring copies."""
    neighbours = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    # Depending on fused multiply-add, each of up to 40 sums may differ in its last place.
    tolerance = 40 * 2.0**-23 if name == "masters" else neighbours * 1.001
    return bool(np.allclose(_flat(expected), _flat(found), rtol=tolerance, atol=1e-7))


def _is_rounded(step: Mapping[str, list[Any]], dtype: str) -> bool:
    return all(
        np.array_equal(_rounded(master, dtype), param)
        for master, param in zip(step["masters"], step["params"], strict=True)
    )


def _rounded(values: npt.NDArray[Any], dtype: str) -> npt.NDArray[np.float32]:
    """Round to the nearest number of the format, ties to even; all values here are normal."""
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float32)
    bits = values.astype(np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)


def _alike(mutant: Mapping[str, Any], got: Mapping[str, Any]) -> bool:
    return bool(mutant["changed"] == got["changed"] and mutant["forms"] == got["forms"]) and all(
        np.allclose(_flat(m[name]), _flat(g[name]), rtol=1e-6, atol=1e-7)
        for m, g in zip(mutant["steps"], got["steps"], strict=True)
        for name in ("masters", "params")
    )


def _readable(case: Case, value: Any) -> bool:
    count = len(case.inputs["gradients"]) + 1
    return (
        isinstance(value, dict)
        and value.keys() == {"steps", "forms", "changed", "records"}
        and isinstance(value["forms"], list)
        and all(
            type(flag) is bool for flag in (*value["forms"], value["changed"], value["records"])
        )
        and isinstance(value["steps"], list)
        and len(value["steps"]) == len(value["forms"])
        and (len(value["steps"]) == count or not all(value["forms"]))
        and all(isinstance(s, dict) and s.keys() == {"masters", "params"} for s in value["steps"])
        and all(_arrays(step[name]) for step in value["steps"] for name in step)
    )


def _arrays(values: Any) -> bool:
    return (
        isinstance(values, list)
        and all(isinstance(a, np.ndarray) and a.dtype == np.float32 for a in values)
        and [a.shape for a in values] == list(_SHAPES)
    )


master_weights = Task(
    id="lab07-master_weights",
    parts={_SMALL: 2, _LOW: 1, _FIRST: 1},
    defines=("MasterWeights",),
    probe="master_weights",
    cases=_cases,
    judge=_judge,
    ban=NO_AMP,
    mistakes={
        "shares_its_lists": "Two of your objects share their tensors: the second one's load "
        "replaces the first one's tensors. Make `master` and `params` in self, not in the class.",
        "shares_its_rate": "Two of your objects share `lr`: the one made last sets it for both. "
        "Keep it in self, not in the class or in a global variable.",
        "updates_the_copy": "You update the 16-bit copy, where an update below half a gap is "
        "lost. Update the float32 masters, and round them into the copy.",
        "masters_from_the_copy": "You read the masters back from the 16-bit copy, which rounds "
        "away all the small updates they had accumulated. Make the copy from the masters, never "
        "the other way round.",
        "product_in_low": "You compute lr * grad in 16 bits, where it is rounded or becomes 0. "
        "Convert the gradient to float32 first.",
        "copy_not_refreshed": "Your params stay as they were while the masters move. Round the "
        "masters into the params at the end of a step.",
        "copy_updated_beside": "You update masters and params separately, so they drift apart. "
        "The params must be the rounded masters.",
        "copy_one_step_late": "Your params hold the previous step's masters. Update first, then "
        "round.",
        "steps_uphill": "Your masters move along the gradient. SGD goes against it.",
        "masters_stand_still": "Your masters don't move. `master = ...` only rebinds a name: "
        "change the tensor itself, as `master -= ...` does.",
        "master_rounded_at_first": "Your masters start as the rounded weights. Start them from "
        "the loaded weights, in float32.",
        "aliases_the_input": "Your masters share memory with the tensors passed to load and "
        "change them. Clone those tensors.",
        "stops_at_none": "Your step stops at the first gradient of None and skips later "
        "parameters. Continue with the next one.",
    },
)
