"""Exercise: SGD within the backward pass, where each gradient is used and freed at once."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autograder.content.lab03.adam_step import NO_TORCH_OPTIM
from autograder.content.lab03.lean_adam_step import SLACK_BYTES
from autograder.model.compare import same
from autograder.model.task import Answer, Budget, Case, Finding, Task

__all__ = ["step_in_backward"]

_SAME, _LIVE = "same result", "gradients live at once"
_SLACK_BYTES = 64 * 1024  # for the activations' gradients and the grader
_TOLERANCE = 1e-9
_DEFAULT_LR = 1e-3
_OTHER_LR = 0.5  # for the probe's second call


def _cases(rng: np.random.Generator) -> list[Case]:
    lr = float(rng.uniform(0.01, 0.1))
    starts = [rng.standard_normal(shape) for shape in ((4, 5), (5, 5), (5, 3))]
    # 18 MiB in total; the two largest make up less than a fifth.
    widths = [512, *(int(width) for width in rng.integers(580, 660, 11)), 512]
    budget = Budget(sum(_sizes(widths)) + 2 * max(_sizes(widths)) + _SLACK_BYTES + SLACK_BYTES)
    return [
        Case((_SAME,), {"weights": starts, "lr": lr}),
        Case((_SAME,), {"weights": starts, "lr": None}),
        # The meter is exact to the gradient; the kernel's budget leaves room for one more.
        Case((_LIVE,), {"widths": [width // 4 for width in widths], "lr": lr}),
        Case((_LIVE,), {"widths": widths, "lr": lr}, budget=budget),
    ]


def _sizes(widths: Sequence[int]) -> list[int]:
    """Bytes of each weight in the chain."""
    return [4 * a * b for a, b in itertools.pairwise(widths)]


def _after(weights: list[np.ndarray[Any, Any]], lr: float) -> tuple[list[Any], list[Any]]:
    """The weights after one step, and the gradients at these weights, derived on paper.

    The loss is the sum of ones @ a @ b @ b @ c.
    """

    def gradients(a: Any, b: Any, c: Any) -> list[Any]:
        x0, last = np.ones((1, len(a))), np.ones((1, c.shape[1]))
        x1 = x0 @ a
        x2 = x1 @ b
        d3 = last @ c.T
        d2 = d3 @ b.T
        return [x0.T @ (d2 @ b.T), x1.T @ d2 + x2.T @ d3, (x2 @ b).T @ last]

    stepped = [w - lr * g for w, g in zip(weights, gradients(*weights), strict=True)]
    return stepped, gradients(*stepped)


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    value = answer.value if isinstance(answer.value, dict) else {}
    if "weights" in case.inputs:
        return {_SAME: _same_result(case.inputs, value)}
    return {_LIVE: _within_bound(case.inputs, value, answer)}


def _same_result(inputs: Mapping[str, Any], value: Mapping[str, Any]) -> Finding:
    weights, lr = inputs["weights"], _DEFAULT_LR if inputs["lr"] is None else inputs["lr"]
    stepped, _ = _after(weights, lr)
    twice, gradients = _after(stepped, lr)
    first, second, third = (value.get(key) for key in ("stepped", "stepped_twice", "after_remove"))
    left = value.get("gradients_left")
    all_like = all(_like(some, weights) for some in (first, second, third))
    if not (all_like and isinstance(left, list)):
        return Finding(False, "The answers came back garbled.")
    if _close(first, weights):
        return Finding(False, "After backward the parameters hadn't moved.", ("no_step",))
    uphill = [2 * w - s for w, s in zip(weights, stepped, strict=True)]
    if _close(first, uphill):
        return Finding(False, "", ("uphill",))
    if _close(first, _after(weights, _OTHER_LR)[0]):
        return Finding(False, "A later call with lr=0.5 changed the first one's lr.", ("shared",))
    if not _close(first, stepped):
        with_lr = "With the default lr" if inputs["lr"] is None else f"With lr={lr:.4g}"
        said = f"{with_lr}, the parameters are not param - lr * grad after backward."
        return Finding(False, said)
    if not all(one is False for one in left):
        return Finding(False, "", ("gradients_stay",))
    if not _close(second, twice):
        return Finding(False, "", ("first_backward_only",))
    if not _close(third, twice) or not _like(value.get("gradients"), gradients):
        return Finding(False, "", ("remove_does_nothing",))
    if not _close(value["gradients"], gradients):
        return Finding(False, "After remove(), the gradients differ from backward's.")
    if not same(1 - _OTHER_LR, value.get("other")):
        said = (
            "remove() on the first call's object stopped another call's parameter from being "
            "updated."
        )
        return Finding(False, said, ("shared",))
    if not same(3, value.get("hooked")):
        said = "A parameter already had a hook; it didn't run in each of three backward passes."
        return Finding(False, said, ("others_hooks",))
    return Finding(True)


def _within_bound(inputs: Mapping[str, Any], value: Mapping[str, Any], answer: Answer) -> Finding:
    widths = inputs["widths"]
    got = value.get("ends")
    if not _pairs_of_numbers(got, len(widths) - 1):
        return Finding(False, "The answers came back garbled.")
    starts = np.array([[1 / rows] * 2 for rows in widths[:-1]])
    ends = np.array(got)
    moves = ends - starts
    if np.allclose(ends, starts, rtol=1e-6, atol=0):
        return Finding(False, "After backward, no parameter had moved.", ("no_step",))
    # The other part checks direction and size; here, all steps only have to agree.
    steps = moves / np.array(_gradients(widths))[:, np.newaxis]
    if not np.allclose(steps, steps[0, 0], rtol=1e-3):
        return Finding(
            False, "After backward through 12 layers, some parameters hadn't been updated."
        )
    sizes, rise_bytes = _sizes(widths), answer.metered("rise_bytes")
    # Two of them: the second is the next gradient, or a temporary as large as the largest gradient.
    if answer.breaks_budget(rise_bytes, 2 * max(sizes) + _SLACK_BYTES):
        stay = (rise_bytes or 0) >= sum(sizes)
        said = "More was live at once than twice the largest gradient."
        return Finding(False, said, ("gradients_stay",) if stay else ())
    return Finding(True)


def _pairs_of_numbers(got: Any, count: int) -> bool:
    return (
        isinstance(got, list)
        and len(got) == count
        and all(isinstance(pair, list) and len(pair) == 2 for pair in got)
        and all(type(number) is float for pair in got for number in pair)
    )


def _gradients(widths: Sequence[int]) -> list[float]:
    """The gradient of each weight, as one number because all its values are equal.

    A layer of `rows` inputs is filled with 1 / rows, so it maps ones to ones, and its gradient is
    the product of columns / rows over the layers after it.
    """
    gradients = [1.0]
    for rows, columns in reversed(list(itertools.pairwise(widths))[1:]):
        gradients.append(gradients[-1] * columns / rows)
    return gradients[::-1]


def _like(arrays: Any, model: list[Any]) -> bool:
    return (
        isinstance(arrays, list)
        and len(arrays) == len(model)
        and all(isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in arrays)
        and [a.shape for a in arrays] == [m.shape for m in model]
    )


def _close(arrays: Any, expected: list[Any]) -> bool:
    return all(
        np.allclose(a, e, rtol=_TOLERANCE, atol=_TOLERANCE)
        for a, e in zip(arrays, expected, strict=True)
    )


step_in_backward = Task(
    id="lab03-step_in_backward",
    parts={_SAME: 1, _LIVE: 2},
    defines=("step_in_backward",),
    probe="step_in_backward",
    stretch=True,
    cases=_cases,
    judge=_judge,
    mistakes={
        "no_step": "backward() alone must make the step. Register a hook on each parameter with "
        "register_post_accumulate_grad_hook, and let the hook update the parameter under "
        "torch.no_grad().",
        "first_backward_only": "The second backward makes no step. Hooks must stay until remove() "
        "is called.",
        "uphill": "Your step goes uphill: subtract lr times the gradient.",
        "gradients_stay": "Your gradients stay after use. Set param.grad = None at the end of a "
        "hook that runs after the gradient was accumulated, and don't keep the gradient "
        "elsewhere, such as in a list or a closure.",
        "shared": "Your function shares hooks or the lr between calls, for example in a global or "
        "a class attribute. Another model may step at the same time: keep both in local variables.",
        "others_hooks": "You removed hooks that a parameter had before. They aren't yours: keep "
        "the handles of your own hooks, and remove only those.",
        "remove_does_nothing": "After remove(), backward must leave the parameters alone and keep "
        "their gradients. Remove the hooks of all parameters.",
    },
    ban=NO_TORCH_OPTIM,
    trust="measured",
)
