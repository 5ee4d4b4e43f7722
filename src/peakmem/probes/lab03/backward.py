"""Probe of lab 3's step within backward, on three weights and on a wide chain."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy.typing as npt
import torch

from peakmem.probes import Namespace, earlier_objects_set_aside
from peakmem.probes.arrays import arrays_of, gradient_arrays
from peakmem.probes.metering import rise_of
from peakmem.probes.own_work import refusing_optimizers

__all__ = ["step_in_backward"]

Array = npt.NDArray[Any]


@refusing_optimizers()
def step_in_backward(
    student: Namespace,
    lr: float | None,
    weights: Sequence[Array] | None = None,
    widths: Sequence[int] | None = None,
    metered: bool = True,
) -> dict[str, Any]:
    """Run backward with the student's `step_in_backward`, on three `weights` or a wide chain.

    If `lr` is None, the student's default applies. With three weights a, b, c, the loss is the sum
    of ones @ a @ b @ b @ c. Returns `stepped`, the weights after backward; `gradients_left`,
    whether each weight then has a gradient; `stepped_twice`, the weights after another backward;
    and, after remove() and one more backward, the weights (`after_remove`) and their `gradients`. A
    second call of the function gets a separate number, 1.0, with a gradient of 1 and an lr of 0.5;
    `other` is that number after all this and its own backward. `hooked` counts the runs of a hook
    that was on `a` from the start.

    `widths` describe a chain of float32 layers, each filled with 1 / its number of rows. Returns
    the first and the last value of each weight after backward (`ends`), and if `metered`,
    `rise_bytes`, the rise of live bytes during backward.
    """
    options = {} if lr is None else {"lr": lr}
    if weights is None:
        return _chain(student.step_in_backward, widths or [], options, metered=metered)
    a, b, c = tensors = [torch.tensor(array, requires_grad=True) for array in weights]

    def backward() -> list[Array]:
        (torch.ones(1, len(a), dtype=a.dtype) @ a @ b @ b @ c).sum().backward()  # type: ignore[no-untyped-call]
        return arrays_of(tensors)

    hooked: list[torch.Tensor] = []
    a.register_post_accumulate_grad_hook(hooked.append)  # type: ignore[no-untyped-call]
    other = torch.ones(1, requires_grad=True)
    # Both results are kept alive, because hooks may live only as long as these.
    handles = [student.step_in_backward(tensors, **options)]
    handles.append(student.step_in_backward([other], lr=0.5))
    stepped = backward()
    gradients_left = [tensor.grad is not None for tensor in tensors]
    stepped_twice = backward()
    handles[0].remove()
    after_remove = backward()
    other.sum().backward()  # type: ignore[no-untyped-call]
    return {
        "stepped": stepped,
        "gradients_left": gradients_left,
        "stepped_twice": stepped_twice,
        "after_remove": after_remove,
        "other": other.item(),
        "hooked": len(hooked),
        "gradients": gradient_arrays(tensors),
    }


def _chain(
    step_in_backward: Callable[..., Any],
    widths: Sequence[int],
    options: Mapping[str, float],
    *,
    metered: bool,
) -> dict[str, Any]:
    shapes = list(itertools.pairwise(widths))
    weights = [torch.full(shape, 1 / shape[0], requires_grad=True) for shape in shapes]
    handle = step_in_backward(weights, **options)
    x = torch.ones(1, widths[0])
    for weight in weights:
        x = x @ weight
    loss = x.sum()
    with earlier_objects_set_aside():
        figures = rise_of(loss.backward, weights, x, loss, metered=metered)
    handle.remove()
    return {"ends": [[w[0, 0].item(), w[-1, -1].item()] for w in weights], **figures}
