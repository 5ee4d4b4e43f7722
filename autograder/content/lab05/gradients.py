"""Reads gradients out of an answer, compares them, and names the mistakes in accumulating them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autograder.model.compare import show
from autograder.model.task import Finding

__all__ = [
    "COMMON_MISTAKES",
    "KEEPS_GRAPHS",
    "OTHER_MODE",
    "UNSEEN",
    "Outcome",
    "as_before",
    "close",
    "faults_of_use",
    "forwards_unseen",
    "gradients_in",
    "gradients_of",
    "graphs_kept",
    "is_number",
    "is_tensor",
    "number_in",
    "sizes_of",
    "weighted",
]

Array = np.ndarray[Any, np.dtype[Any]]
_TOLERANCE = 1e-6  # relative to a parameter's largest gradient

COMMON_MISTAKES = {
    "whole_batch": "You run the model on more samples at a time than a micro-batch has, so you "
    "save no memory. Cut the batch first, then run the model on one piece at a time.",
    "changes_arguments": "Your function changes parameters, inputs, targets, hooks or the model's "
    "mode. Only the gradients may change.",
    "returns_tensor": "Your function returns a tensor. Return a plain number: calling loss.item() "
    "for each micro-batch also releases its graph.",
}

KEEPS_GRAPHS = (
    "Your micro-batches stay in memory together. Call backward() inside the loop, once for each "
    "micro-batch, and keep numbers (loss.item()), not losses or outputs."
)


OTHER_MODE = (
    "Your function changes the model's mode. The caller chooses between training and evaluation: "
    "don't call train() or eval() here."
)

UNSEEN = (
    "The grader saw your model run on fewer samples than the batch has, so its counts mean "
    "nothing: call model(...) itself, not its layers. An instructor will look at this."
)


@dataclass(frozen=True)
class Outcome:
    """A call's result: the number it returns, and the gradients afterwards."""

    #: The number that the call returns.
    loss: float
    #: Each parameter's gradient afterwards.
    gradients: list[Array]


def sizes_of(samples: int, micro_batch: int) -> list[int]:
    """Return the sizes of the micro-batches: all equal, except for a short last one.

    >>> sizes_of(7, 3)
    [3, 3, 1]
    """
    return [min(micro_batch, samples - start) for start in range(0, samples, micro_batch)]


def gradients_of(model: torch.nn.Module, loss: Tensor) -> list[Array]:
    """Return the gradient of the loss for each parameter."""
    found = torch.autograd.grad(loss, list(model.parameters()))
    return [gradient.numpy() for gradient in found]


def weighted(
    parts: Sequence[list[Array]], weights: Sequence[float], before: list[Array], keep: float = 1.0
) -> list[Array]:
    """Return keep * before + the weighted sum of the parts, parameter by parameter."""
    total = [keep * start for start in before]
    for weight, part in zip(weights, parts, strict=True):
        total = [old + weight * gradient for old, gradient in zip(total, part, strict=True)]
    return total


def as_before(before: Sequence[Array | None], shapes: Iterable[tuple[int, ...]]) -> list[Array]:
    """Return the gradients to start from: zero for missing ones."""
    pairs = zip(before, shapes, strict=True)
    return [np.zeros(shape) if gradient is None else gradient for gradient, shape in pairs]


def gradients_in(value: Any, like: Sequence[Array]) -> list[Array] | None:
    """Return the gradients in an answer, with zeros for None; None if it has another form."""
    if not isinstance(value, list) or len(value) != len(like):
        return None
    found = [np.zeros_like(m) if v is None else v for v, m in zip(value, like, strict=True)]
    for array, model in zip(found, like, strict=True):
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            return None
        if array.shape != model.shape:
            return None
    return found


def close(got: Sequence[Array], expected: Sequence[Array], tolerance: float = _TOLERANCE) -> bool:
    """Tell whether gradients are equal up to a fraction of each parameter's largest one."""
    return all(
        np.allclose(g, e, rtol=0, atol=tolerance * _largest(e), equal_nan=True)
        for g, e in zip(got, expected, strict=True)
    )


def _largest(gradient: Array) -> float:
    return max(float(np.max(np.abs(np.nan_to_num(gradient)))), 1e-12)


def is_number(value: Any, expected: float) -> bool:
    """Tell whether a returned value is this number, up to rounding."""
    number = number_in(value)
    if number is None:
        return False
    return bool(np.isclose(number, expected, rtol=1e-6, atol=1e-9, equal_nan=True))


def is_tensor(value: Any) -> bool:
    """Tell whether a probe's value stands for a tensor, which can't be sent as plain data."""
    return isinstance(value, str) and value == "a tensor"


def number_in(value: Any) -> float | None:
    """Return a returned number as a float; None if it isn't one, or is too large for a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def graphs_kept(value: Mapping[str, Any]) -> Finding | None:
    """Return what is wrong if graphs of several micro-batches were in memory at once."""
    waiting = value.get("waiting")
    if type(waiting) is int and waiting < 2:
        return None
    said = (
        f"When a forward began, {show(waiting)} earlier ones were still waiting for their backward."
    )
    return Finding(False, said, ("keeps_graphs",))


def forwards_unseen(value: Mapping[str, Any], samples: int) -> Finding | None:
    """Return a doubt if the model was seen to run on fewer samples than there are."""
    sizes = value.get("sizes")
    if isinstance(sizes, list) and sum(size for size in sizes if type(size) is int) >= samples:
        return None
    return Finding(False, doubt=UNSEEN)


def faults_of_use(value: Mapping[str, Any], micro_batch: int) -> Finding | None:
    """Return what is wrong with how the function treated its arguments, if anything."""
    sizes, changed = value.get("sizes"), value.get("changed")
    if not isinstance(sizes, list) or not isinstance(changed, list):
        return Finding(False, "The answers came back garbled.")
    if any(type(size) is not int or not 0 <= size <= micro_batch for size in sizes):
        said = (
            f"With micro_batch={micro_batch} your function gave the model batches of {show(sizes)}."
        )
        return Finding(False, said, ("whole_batch",))
    if len(changed):
        said = f"Afterwards these had changed: {', '.join(map(str, changed))}."
        return Finding(False, said, ("changes_arguments",))
    return None
