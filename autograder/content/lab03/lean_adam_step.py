"""Exercise: Adam's step within a memory budget, which the meter measures at grading."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.content.lab03.adam import Model
from autograder.content.lab03.adam_step import MISTAKES, NO_TORCH_OPTIM, judge_models, path_cases
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab03 import large_tensors, pieces_of, sums_of_pieces

__all__ = [
    "FLOAT32_TOLERANCE",
    "SLACK_BYTES",
    "UNEVEN",
    "is_even",
    "lean_adam_step",
    "watched_model",
    "watched_places",
]

_EQUAL, _BUDGET = "equal results", "under the budget"
_KIB, _MIB = 2**10, 2**20
_LR = 0.1
Tensors = tuple[list[Any], list[Any]]  # parameters and gradients
FLOAT32_TOLERANCE = 1e-5  # of the distance moved, in float32

# Bytes of a budget beyond the text's bound, for the small runs before it and for the answer.
SLACK_BYTES = 2 * _MIB


def _cases(rng: np.random.Generator) -> list[Case]:
    small = [replace(case, parts=(_EQUAL,)) for case in path_cases(rng)]
    return [*small, _medium(rng), _large(rng)]


def _medium(rng: np.random.Generator) -> Case:
    """Tensors whose values all take the same step, however they are cut into pieces.

    The meter decides how much may stay between calls, because the kernel's budget would allow as
    much as a call takes.
    """
    shapes = [[int(rng.integers(140_000, 150_000))], [2, int(rng.integers(70_000, 80_000))]]
    medium = {
        "shapes": shapes,
        "seed": int(rng.integers(2**32)),
        "factors": [1.0, -0.5],
        "watched": [np.array([0])] * len(shapes),
        "even": True,
    }
    return Case((_BUDGET,), {"large": medium, "options": {"lr": _LR}})


def _large(rng: np.random.Generator) -> Case:
    """One vector, and one matrix whose rows alone are larger than what a notebook may hold."""
    shapes = [
        [int(rng.integers(2_600_000, 2_700_000))],
        [3, int(rng.integers(2_400_000, 2_500_000))],
        [65],
        # A tensor of columns has no long last dimension to cut. It is small, because an answer that
        # takes rows one by one makes a view of each, and a few thousand views take a MiB.
        [2, 400, 1],
    ]
    large = {
        "shapes": shapes,
        "seed": int(rng.integers(2**32)),
        "factors": [1.0, -0.5],
        "watched": [watched_places(rng, math.prod(shape)) for shape in shapes],
    }
    budget = Budget(2 * _bytes_of(shapes) + _most_bytes(shapes) + SLACK_BYTES)
    return Case((_BUDGET,), {"large": large, "options": {"lr": _LR}}, budget=budget)


def _bytes_of(shapes: Sequence[Sequence[int]]) -> int:
    return 4 * sum(math.prod(shape) for shape in shapes)


def _most_bytes(shapes: Sequence[Sequence[int]]) -> int:
    """Bytes that a call may take in addition to parameters and gradients."""
    return 2 * _bytes_of(shapes) + _MIB


def watched_places(rng: np.random.Generator, n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return flat positions of some of a tensor's n values: both ends, and places between."""
    return np.unique([0, 1, n - 2, n - 1, *rng.integers(n, size=200)])


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    inputs = case.inputs
    if "models" in inputs:
        finding = judge_models(inputs["models"], inputs["options"], answer.value)
    else:
        finding = _large_step(inputs, answer)
    return dict.fromkeys(case.parts, finding)


def _large_step(inputs: Mapping[str, Any], answer: Answer) -> Finding:
    value = answer.value if isinstance(answer.value, dict) else {}
    tensors = large_tensors(
        inputs["large"]["shapes"], inputs["large"]["seed"], bool(inputs["large"].get("even"))
    )
    model = watched_model(inputs["large"], tensors)
    said = value.get("models")
    results = judge_models([model], inputs["options"], said, FLOAT32_TOLERANCE)
    if not results.ok:  # small tensors may be a single piece, so mistakes in pieces show only here
        return replace(results, mistakes=(*results.mistakes, "uneven_pieces"))
    if inputs["large"].get("even") and not is_even(value.get("spread")):
        return Finding(False, UNEVEN, ("uneven_pieces",))
    if not _has_sums(inputs["large"], tensors, inputs["options"]["lr"], value.get("sums")):
        said = "Some values of the large tensors differ from Adam's."
        return Finding(False, said, ("uneven_pieces",))
    shapes = inputs["large"]["shapes"]
    state_bytes = 2 * _bytes_of(shapes)
    rise_bytes = answer.metered("rise_bytes", "numpy_rise_bytes")
    kept_bytes = answer.metered("kept_bytes", "numpy_kept_bytes") or 0
    keeps = kept_bytes > state_bytes + 64 * _KIB
    if not answer.breaks_budget(rise_bytes, _most_bytes(shapes)) and not (
        keeps and not answer.memory
    ):
        unseen = not answer.memory and kept_bytes < 0.95 * state_bytes
        return Finding(False, doubt=_UNSEEN) if unseen else Finding(True)
    if keeps:
        wide = kept_bytes >= 2 * state_bytes
        return Finding(False, _KEPT, ("wide_moments",) if wide else ("keeps_too_much",))
    return Finding(False, _RISE, _piece(shapes, (rise_bytes or 0) - state_bytes))


def is_even(spread: Any) -> bool:
    """Tell whether the values of a parameter, equal at the start, are equal after the steps."""
    return type(spread) is float and 0 <= spread <= FLOAT32_TOLERANCE * _LR


UNEVEN = (
    "All values of a parameter, and all values of its gradient, were equal. After your step, some "
    "values of the parameter differ."
)
_UNSEEN = (
    "Your step gives Adam's results, but the meter doesn't see two moments for each value. An "
    "instructor will look at where they are."
)
_KEPT = (
    "Between calls, params + grads + 2P + 64 KiB may be live (P: the parameters' bytes), "
    "including numpy's memory. Your step keeps more."
)
_RISE = (
    "During a call, at most params + grads + 2P + 1 MiB may be live (P: the parameters' bytes), "
    "including numpy's memory. Your step asked for more."
)


def _piece(shapes: Sequence[Sequence[int]], extra_bytes: int) -> tuple[str, ...]:
    """The likely mistake behind a temporary of this size: a whole tensor, or a whole row."""
    rows = [4 * shape[-1] for shape in shapes if len(shape) > 1]
    tensors = [4 * math.prod(shape) for shape in shapes]
    if extra_bytes >= max(tensors):
        return ("whole_tensors",)
    return ("whole_rows",) if extra_bytes >= max(rows) else ()


def watched_model(large: Mapping[str, Any], tensors: Tensors | None = None) -> Model:
    """Return the watched values as a model of their own: Adam treats each value separately.

    `tensors` are the large parameters and gradients, if they have been drawn already.
    """
    tensors = tensors or large_tensors(large["shapes"], large["seed"])
    parameters, gradients = (
        [array.reshape(-1)[where] for array, where in zip(arrays, large["watched"], strict=True)]
        for arrays in tensors
    )
    by_call = np.cumprod(large["factors"])
    return {
        "parameters": parameters,
        "gradients": [np.multiply.outer(by_call, gradient) for gradient in gradients],
        "skipped": [],
    }


def _has_sums(large: Mapping[str, Any], tensors: Tensors, lr: float, got: Any) -> bool:
    """Tell whether the sums of pieces of the large tensors are those that Adam would give.

    Without this check, stepping only the watched values would pass. `tensors` are changed.
    """
    factors = np.cumprod(large["factors"])
    tolerance = FLOAT32_TOLERANCE * 2**16 * lr * len(factors)
    if not (isinstance(got, list) and len(got) == len(large["shapes"])):
        return False
    for parameter, gradient, sums in zip(*tensors, got, strict=True):
        # All gradients of a value are multiples of the first one, and so are its moments.
        for values, first in zip(pieces_of(parameter), pieces_of(gradient), strict=True):
            for m, root in _moments(factors.tolist()):
                values -= np.float32(lr * m) * first / (np.float32(root) * abs(first) + 1e-8)
        expected = sums_of_pieces(parameter)
        if not (isinstance(sums, np.ndarray) and sums.shape == expected.shape):
            return False
        if not np.all(np.abs(sums - expected) <= tolerance):
            return False
    return True


def _moments(multiples: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Yield the corrected first moment and the root of the second, as multiples of a gradient."""
    first = second = 0.0
    for step, multiple in enumerate(multiples, 1):
        first = 0.9 * first + 0.1 * multiple
        second = 0.999 * second + 0.001 * multiple**2
        yield first / (1 - 0.9**step), math.sqrt(second / (1 - 0.999**step))


lean_adam_step = Task(
    id="lab03-lean_adam_step",
    parts={_EQUAL: 2, _BUDGET: 2},
    defines=("lean_adam_step",),
    probe="lean_adam_step",
    stretch=True,
    cases=_cases,
    judge=_judge,
    mistakes=MISTAKES
    | {
        "uneven_pieces": "Your pieces don't cover a tensor exactly once: some values are updated "
        "twice or not at all. Check where one piece ends and the next begins, and count one step "
        "per parameter.",
        "whole_tensors": "Your step makes temporaries as large as a whole tensor. Work in place "
        "on pieces of a tensor, so that temporaries are small.",
        "whole_rows": "Your step works row by row, and a row can have any length. Cut "
        "rows into pieces of a fixed size.",
        "wide_moments": "Your moments take more bytes per value than the parameters. Give them "
        "the parameter's dtype, as torch.zeros_like(param) does.",
        "keeps_too_much": "Your step keeps more than the two moments from call to call. Look for "
        "copies in `state`, in globals and in default arguments.",
    },
    ban=NO_TORCH_OPTIM,
    trust="measured",
)
