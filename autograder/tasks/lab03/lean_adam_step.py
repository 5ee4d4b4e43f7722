"""Exercise: Adam's step within a memory budget, which the meter measures at grading."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.task import Answer, Case, Finding, Task
from autograder.tasks.lab03.adam import Model
from autograder.tasks.lab03.adam_step import MISTAKES, NO_TORCH_OPTIM, judge_models, path_cases
from peakmem.probes.lab03 import large_tensors

__all__ = ["NOISE_BYTES", "lean_adam_step"]

_EQUAL, _BUDGET = "equal results", "under the budget"
_KIB, _MIB = 2**10, 2**20
_COUNTS = ("rise_bytes", "numpy_rise_bytes", "kept_bytes", "numpy_kept_bytes")
_TOLERANCE = 1e-5  # of the distance moved, in float32

# How much more than the meter the system may see of an honest step. Its resident memory rises by
# whole pages and heap areas, and by freed memory that malloc keeps: mostly by less than 0.5 MiB for
# right answers of all kinds, but once in hundreds of gradings on a busy machine by over 4 MiB. An
# uncounted copy of the parameters would be over 14 MiB.
NOISE_BYTES = 10 * _MIB


def _cases(rng: np.random.Generator) -> list[Case]:
    small = [replace(case, parts=(_EQUAL,)) for case in path_cases(rng)]
    return [*small, _large(rng)]


def _large(rng: np.random.Generator) -> Case:
    """One vector and one matrix whose rows are larger than the 1 MiB there is to spare."""
    shapes = [
        [int(rng.integers(1_080_000, 1_120_000))],
        [3, int(rng.integers(880_000, 900_000))],
        [65],
    ]
    large = {
        "shapes": shapes,
        "seed": int(rng.integers(2**32)),
        "factors": [1.0, -0.5],
        "watched": [_watched(rng, math.prod(shape)) for shape in shapes],
    }
    return Case((_BUDGET,), {"large": large, "options": {"lr": 0.1}})


def _watched(rng: np.random.Generator, n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Both ends of a tensor, and places between."""
    return np.unique([0, 1, n - 2, n - 1, *rng.integers(n, size=200)])


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    inputs = case.inputs
    if "models" in inputs:
        finding = judge_models(inputs["models"], inputs["options"], answer.value)
    else:
        finding = _within_budget(inputs, answer.value, answer.resident_bytes)
    return dict.fromkeys(case.parts, finding)


def _within_budget(inputs: Mapping[str, Any], value: Any, resident_bytes: int | None) -> Finding:
    if not isinstance(value, dict) or any(type(value.get(name)) is not int for name in _COUNTS):
        return Finding(False, "The answers came back garbled.")
    results = judge_models(
        [_watched_model(inputs["large"])], inputs["options"], value.get("models"), _TOLERANCE
    )
    if not results.ok:
        return results
    shapes = inputs["large"]["shapes"]
    parameter_bytes = 4 * sum(math.prod(shape) for shape in shapes)
    rise_bytes = value["rise_bytes"] + value["numpy_rise_bytes"]
    kept_bytes = value["kept_bytes"] + value["numpy_kept_bytes"]
    if kept_bytes > 2 * parameter_bytes + 64 * _KIB:
        wide = kept_bytes >= 4 * parameter_bytes
        return Finding(False, _KEPT, ("wide_moments",) if wide else ("keeps_too_much",))
    if rise_bytes > 2 * parameter_bytes + _MIB:
        return Finding(False, _RISE, _piece(shapes, rise_bytes - 2 * parameter_bytes))
    if kept_bytes < 1.9 * parameter_bytes:
        return Finding(False, doubt=_HIDDEN)
    if resident_bytes is not None and resident_bytes > rise_bytes + NOISE_BYTES:
        return Finding(False, doubt=_OUTSIDE)
    return Finding(True)


_KEPT = (
    "Between calls, params + grads + 2P + 64 KiB may be live (P: the parameters' bytes), numpy's "
    "memory included. Yours keeps more."
)
_RISE = (
    "During a call, params + grads + 2P + 1 MiB may be live at most (P: the parameters' bytes), "
    "numpy's memory included. Yours went above it."
)
_HIDDEN = (
    "Your step gives Adam's results, but the meter does not see two moments for each value. A "
    "person has to look at where they are."
)
_OUTSIDE = (
    "Seen from outside, your process took clearly more memory than the meter counted within it. "
    "A person has to look at where it went."
)


def _piece(shapes: Sequence[Sequence[int]], extra_bytes: int) -> tuple[str, ...]:
    """What a temporary of this size is likely to be: a whole tensor, or a row of one."""
    rows = [4 * shape[-1] for shape in shapes if len(shape) > 1]
    tensors = [4 * math.prod(shape) for shape in shapes]
    if extra_bytes >= max(tensors):
        return ("whole_tensors",)
    return ("whole_rows",) if extra_bytes >= max(rows) else ()


def _watched_model(large: Mapping[str, Any]) -> Model:
    """The watched values as a model of their own: Adam treats each value by itself."""
    parameters, gradients = (
        [array.reshape(-1)[where] for array, where in zip(arrays, large["watched"], strict=True)]
        for arrays in large_tensors(large["shapes"], large["seed"])
    )
    by_call = np.cumprod(large["factors"])
    return {
        "parameters": parameters,
        "gradients": [np.multiply.outer(by_call, gradient) for gradient in gradients],
        "skipped": [],
    }


lean_adam_step = Task(
    id="lab03-lean_adam_step",
    parts={_EQUAL: 2, _BUDGET: 2},
    defines=("lean_adam_step",),
    probe="lean_adam_step",
    cases=_cases,
    judge=_judge,
    mistakes=MISTAKES
    | {
        "whole_tensors": "Your step makes values as large as a whole tensor on the way. Work in "
        "place, and on pieces of a tensor, so that what is between is small.",
        "whole_rows": "Your step works row by row, and a row can be as large as it likes. Cut "
        "rows into pieces of a fixed size.",
        "wide_moments": "Your moments take more bytes a value than the parameters do. Give them "
        "the parameter's dtype, as torch.zeros_like(param) does.",
        "keeps_too_much": "Your step keeps more than the two moments from call to call. Look for "
        "copies in `state`, in globals and in default arguments.",
    },
    ban=NO_TORCH_OPTIM,
    trust="measured",
)
