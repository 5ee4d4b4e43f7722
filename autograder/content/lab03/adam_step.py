"""Exercise: Adam's step, without torch.optim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autograder.content.lab03.adam import Array, Model, Path, corrections_off, torch_paths
from autograder.content.lab03.paths import (
    error,
    first_difference,
    moved_and_stood,
    mutants_like,
    paths_in,
)
from autograder.model.compare import same
from autograder.model.restrictions import Ban
from autograder.model.task import Answer, Case, Finding, Task

__all__ = ["MISTAKES", "NO_TORCH_OPTIM", "adam_step", "judge_models", "path_cases"]

_FIRST, _CORRECTION, _NONE, _EPS = (
    "first step",
    "bias correction over 25 steps",
    "None gradients",
    "eps outside the root",
)
_TOLERANCE = 1e-9  # of the distance moved
_FLOAT32 = 1e-5  # an error between _TOLERANCE and this is float32 rounding
_FLOAT32_COUNT = 1e-3  # 1 - 0.999 in float32 cancels, so its error is larger
_NEARER = 1e-3  # how much nearer to a mutant than to torch an answer must be
_TINY_EPS = 1e-15  # for cases that don't test where eps goes

NO_TORCH_OPTIM = Ban(
    names=frozenset(
        {"optim", "torch.optim", "torch.optim.adam", "torch.optim.adamw", "Optimizer"}
        | {"_fused_adam", "_fused_adam_", "_fused_adamw", "_fused_adamw_"}
        | {"_single_tensor_adam", "_multi_tensor_adam", "_single_tensor_adamw"}
    ),
    modules=frozenset({"torch.optim", "torchao", "bitsandbytes", "apex", "deepspeed"}),
    reason=(
        "Write Adam's arithmetic yourself: don't use an optimizer from torch or another library."
    ),
)

MISTAKES = {
    "changes_gradients": "Your step changed a gradient. Other code reads gradients after the step "
    "(to clip or to log them), so compute with them and leave them as they were.",
    "gradients_left_off": "After your step, torch no longer records gradients. Use `with "
    "torch.no_grad():` or the decorator, which end by themselves, rather than "
    "torch.set_grad_enabled(False).",
    "skips_the_call": "A gradient of None makes your step skip the other parameters, too. It "
    "concerns only its own parameter.",
    "not_in_place": "Your parameters didn't move. The caller keeps the tensors in `params`, so "
    "change them in place, under torch.no_grad(): `param -= x` does this, but `param = param - x` "
    "makes a new tensor.",
    "flat_copies": "Your step moves only parameters that are contiguous in memory. reshape(-1) "
    "and flatten() copy all others; change the parameter itself or views of it.",
    "no_bias_correction": "You don't correct the moments for starting at zero. Divide the first "
    "by 1 - beta1**t and the second by 1 - beta2**t, where t counts from 1.",
    "eps_inside_the_root": "Your eps is under the square root. Add it outside the root: sqrt(v) + "
    "eps.",
    "eps_before_the_correction": "You add eps to the root of the uncorrected second moment. "
    "Correct the moment first, then take the root, then add eps.",
    "one_count_for_all": "A parameter's step count rises even if its gradient is None, for "
    "example because all parameters share a count. A parameter without a gradient makes no step: "
    "give each parameter its own count, and leave the count alone if there is no gradient.",
    "counts_every_parameter": "Your step count rises once for every parameter in a call. Each "
    "parameter needs its own count, which rises by 1 in each of its steps.",
    "count_one_ahead": "Your step count is one ahead: in the first step t is 1.",
    "count_stays_one": "Your step count stays 1. A local variable, as in `t += 1`, doesn't last "
    "until the next step: store each parameter's new count with its moments.",
    "count_from_zero": "Your first step divides by zero. At t = 0, 1 - beta**t is 0: count a "
    "parameter's first step as t = 1.",
    "starts_anew": "Your step starts over at each call: its moments and count don't last. Store "
    "the new ones in `state`; `m = ...` alone only rebinds the name m.",
    "none_as_zero": "Your step treats a gradient of None as a gradient of zero. None means that "
    "the parameter wasn't used: leave it, its moments and its count alone.",
    "stops_at_none": "Your step stops at the first gradient of None. Continue with the next "
    "parameter: `continue`, not `return`.",
    "betas_swapped": "Your betas are swapped: the first is for the mean of the gradients, the "
    "second for the mean of their squares.",
    "betas_ignored": "Your step always uses 0.9 and 0.999. These are only the defaults: use "
    "`betas`.",
    "weights_swapped": "Your moments' weights are swapped: beta is for the old moment, 1 - beta "
    "for the new gradient.",
    "no_root": "Your step divides by the second moment itself. Divide by its square root.",
    "second_not_squared": "Your second moment averages the gradients' absolute values. Average "
    "their squares.",
    "corrected_moments_kept": "Your state keeps the corrected moments, so the correction is "
    "applied again in each step. Keep the uncorrected moments, and correct a copy in each step.",
    "sign": "Your step goes uphill: subtract the update.",
    "state_outside": "Your step keeps something outside `state`, so it leaks into another model "
    "or a new training run of the same parameters. Keep everything that must last until the next "
    "call in `state`.",
    "earlier_lr": "Your step uses an earlier call's lr. A schedule changes lr between calls: use "
    "the lr that the current call is given, and don't store it.",
    "float32_step_count": "Your bias corrections are less precise than the parameters. If the "
    "step count is a float32 tensor, as in torch, 1 - beta**t is float32 too: keep the count as a "
    "Python int.",
    "float32_moments": "Your step is less precise than the parameters. Give the moments the "
    "parameter's dtype, as torch.zeros_like(param) does, and don't convert anything.",
}


def path_cases(rng: np.random.Generator) -> list[Case]:
    """Return the cases of a step that must equal Adam's; each decides one part of `adam_step`."""
    betas = (float(rng.uniform(0.8, 0.95)), float(rng.uniform(0.98, 0.9995)))
    lr = float(rng.uniform(1e-3, 1e-1))
    options = {"lr": lr, "betas": betas, "eps": _TINY_EPS}
    pair = [_model(rng, 25, [1.0, 10.0, 0.3, 1.0]) for _ in range(2)]
    at_zero = [_model(rng, 12, [1e-7, 1e-4, 1.0, 1e-7], start=0.0) for _ in range(2)]
    return [
        _case(_FIRST, [_model(rng, 1, [1.0, 0.1, 10.0, 3.0])], {"eps": _TINY_EPS}),
        _case(_CORRECTION, [_model(rng, 25, [1.0, 0.1, 10.0, 3.0])], options),
        _case(_CORRECTION, pair, options),
        _case(_NONE, [_skipping(rng)], options),
        _case(_EPS, at_zero[:1], {"lr": lr, "eps": float(rng.uniform(0.2, 0.5))}),
        _case(_EPS, at_zero[1:], {}),
    ]


def _case(part: str, models: Sequence[Model], options: Mapping[str, Any]) -> Case:
    return Case((part,), {"models": list(models), "options": dict(options)})


def _model(
    rng: np.random.Generator, calls: int, scales: Sequence[float], start: float = 1.0
) -> dict[str, Any]:
    """A model whose parameters have different memory layouts, with gradients of given scales."""
    shapes = [
        (5,),
        (2, 3),
        (2, 3),
        (2, 2, 3),
    ]  # two with equal shape and strides, since these don't identify a tensor
    return {
        "parameters": [start * rng.standard_normal(shape) for shape in shapes],
        "layouts": ["contiguous", "transposed", "transposed", "strided"],
        "gradients": [
            scale * _signed(rng, (calls, *shape))
            for shape, scale in zip(shapes, scales, strict=True)
        ],
        "skipped": [],
    }


def _signed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Values away from zero, so that a tiny eps stays small compared with each of them."""
    values: Array = rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape)
    return values


def _skipping(rng: np.random.Generator) -> dict[str, Any]:
    """A model in which one parameter starts late, one comes and goes, one never has a gradient."""
    away = [{1, 3}, {1, 3}, {1, 2, 3}, {0, 1, 2, 3}, {3}, {2, 3}, {0, 3}, {1, 3}, {3}]
    skipped = [(call, i) for call, gone in enumerate(away) for i in sorted(gone)]
    model = _model(rng, len(away), [1.0, 1.0, 1.0, 1.0])
    model["gradients"][0][4] = 0.0  # a gradient of zeros isn't None: the moments decay
    return {**model, "skipped": skipped}


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    finding = judge_models(case.inputs["models"], case.inputs["options"], answer.value)
    return dict.fromkeys(case.parts, finding)


def judge_models(
    models: Sequence[Model],
    options: Mapping[str, Any],
    said: Any,
    tolerance: float = _TOLERANCE,
) -> Finding:
    """Judge a probe's answer on `models` against torch's Adam.

    `tolerance` is a fraction of the distance moved.
    """
    got = paths_in(models, said)
    if got is None:
        return Finding(False, "The answers came back garbled.")
    changed = next((one["changed"] for one in said if one.get("changed") is not None), None)
    if changed is not None:
        return _changed(changed)
    expected = torch_paths(models, options)
    off = error(models, expected, got)
    restarts = all(one.get("restarts", True) is True for one in said)
    if off <= tolerance and not all(one.get("stands", True) is True for one in said):
        return Finding(False, "One more call, with lr=0, moves a parameter.", ("earlier_lr",))
    if off <= tolerance:
        return Finding(True) if restarts else Finding(False, _AGAIN, ("state_outside",))
    if any(np.isnan(array).all() for path in got for array in path[0]):
        return Finding(False, "After the first call a parameter is NaN.", ("count_from_zero",))
    near = max(_NEARER * min(off, 1.0), min(tolerance, off / 3))
    mistakes = mutants_like(models, options, got, near)
    moved, stood = moved_and_stood(models, expected, got)
    if not (restarts and any(one.get("state_used") for one in said)):
        mistakes.append("state_outside")
    if off <= _FLOAT32_COUNT and _is_off_from_the_start(models, expected, got, tolerance):
        imprecise = corrections_off(models, options, got, _NEARER * off)
    else:
        imprecise = False
    if imprecise:
        mistakes.append("float32_step_count")
    elif off <= _FLOAT32:
        mistakes.append("float32_moments")
    if not moved:
        mistakes.append("not_in_place")
    elif stood and "contiguous" not in stood:
        mistakes.append("flat_copies")
    difference = first_difference(models, options, expected, got, tolerance)
    return Finding(False, difference, tuple(mistakes))


def _is_off_from_the_start(
    models: Sequence[Model], expected: Sequence[Path], got: Sequence[Path], tolerance: float
) -> bool:
    """Tell whether the first call is already off, as with a low-precision step count."""
    first, then = ([path[:1] for path in paths] for paths in (expected, got))
    return error(models, first, then) > tolerance


_AGAIN = "When training restarts with new or emptied states, the same parameters take another path."


def _changed(what: object) -> Finding:
    if same("gradients", what):
        return Finding(False, "", ("changes_gradients",))
    if same("grad_mode", what):
        return Finding(False, "", ("gradients_left_off",))
    if same("lists", what):
        return Finding(False, "Your step changed the list `params` or the list `grads` itself.")
    return Finding(
        False,
        "After your step, a parameter was no longer a leaf that requires a gradient. Change "
        "parameters in place, under torch.no_grad().",
    )


adam_step = Task(
    id="lab03-adam_step",
    parts={_FIRST: 1, _CORRECTION: 2, _NONE: 1, _EPS: 1},
    defines=("adam_step",),
    probe="adam_step",
    cases=path_cases,
    judge=_judge,
    mistakes=MISTAKES,
    ban=NO_TORCH_OPTIM,
)
