"""Probe of lab 7's loss scaler: training of a few parameters, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from peakmem.probes import Namespace
from peakmem.probes.own_work import refusing_operators

__all__ = ["loss_scaler", "train_scaled"]


@refusing_operators("_amp_")  # torch's own scaler
def loss_scaler(student: Namespace, **training: Any) -> list[dict[str, Any]] | str:
    """Train a few parameters with the student's `LossScaler`; see `train_scaled`."""
    return train_scaled(student.LossScaler, **training)


def train_scaled(
    make: Callable[..., Any],
    settings: Mapping[str, Any],
    gradients: Sequence[Sequence[Sequence[float]]],
    max_norm: float | None = None,
    clipped: Sequence[bool] = (),
    good_steps: int = 0,
) -> list[dict[str, Any]] | str:
    """Train a few parameters with the scaler `make(**settings)`, and record every step.

    `gradients` has the true gradient's values for each step and each parameter; inf and NaN stand
    for an overflow. A parameter with one value is 0-dimensional, and one more parameter never gets
    a gradient. The optimizer is SGD with momentum and two groups. With `max_norm`, each step (or
    each in `clipped`, if given) also calls `unscale_` and then clips the gradients. Before all
    this, another optimizer takes `good_steps` steps, and another scaler is created, which the steps
    must not affect.

    Returns one dict per step: `before` and `scale`, which are `scale(1.0)` before and after
    `update`; `parameters`, all values after it; `calls`, how often the optimizer has stepped by
    then; `unscaled`, the gradients' values right after `unscale_`, or None without it; and `left`,
    whether the parameter without a gradient still has none. Returns "changed" if `scale` wrote into
    the loss.
    """
    parameters = [torch.nn.Parameter(torch.ones(len(values)).squeeze()) for values in gradients[0]]
    unused = torch.nn.Parameter(torch.ones(1))
    groups = [{"params": [unused, *parameters[:1]]}, {"params": parameters[1:]}]
    optimizer = torch.optim.SGD(groups, lr=0.125, momentum=0.5, foreach=False)
    calls: list[Any] = []
    optimizer.register_step_post_hook(lambda *called: calls.append(called))
    scaler = make(**settings)
    beside = make(**{**settings, "initial": 1.0})
    _take_good_steps(scaler, good_steps)
    steps = []
    for true, clips in zip(gradients, clipped or [True] * len(gradients), strict=True):
        optimizer.zero_grad()
        products = [
            _with_gradient(parameter, values).sum()
            for parameter, values in zip(parameters, true, strict=True)
        ]
        loss = torch.stack(products).sum()
        given = loss.item()
        scaler.scale(loss).backward()
        if not math.isnan(given) and loss.item() != given:
            return "changed"
        unscaled = None
        if clips and max_norm is not None:
            scaler.unscale_(optimizer)
            unscaled = _values(parameter.grad for parameter in parameters)
            torch.nn.utils.clip_grad_norm_(parameters, max_norm)
            scaler.scale(loss.detach())  # as for a log, which must neither begin nor end a step
        scaler.step(optimizer)
        before = float(scaler.scale(1.0))
        scaler.update()
        steps.append(
            {
                "before": before,
                "scale": float(scaler.scale(1.0)),
                "parameters": _values(parameter.detach() for parameter in parameters),
                "calls": len(calls),
                "unscaled": unscaled,
                "left": unused.grad is None,
            }
        )
    del beside
    return steps


def _with_gradient(parameter: torch.Tensor, values: Sequence[float]) -> torch.Tensor:
    """Return the parameter, set up so that backward multiplies its gradient by `values` unseen."""
    result = parameter.view_as(parameter)
    result.register_hook(  # type: ignore[no-untyped-call]
        lambda gradient: gradient * torch.tensor(values).view_as(gradient)
    )
    return result


def _take_good_steps(scaler: Any, count: int) -> None:
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.0, foreach=False)
    for _ in range(count):
        # Some small gradients are 0; such a step is good, too.
        weight.grad = torch.zeros(1) * float(scaler.scale(1.0))
        scaler.step(optimizer)
        scaler.update()


def _values(tensors: Any) -> list[float]:
    return [value for tensor in tensors for value in tensor.flatten().tolist()]
