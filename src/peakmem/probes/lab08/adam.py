"""Probe of lab 8's Adam with sharded moments: its updates, and each rank's state."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from peakmem.probes.arrays import arrays_of
from peakmem.probes.ranks import Ask, figures_of, metered, probing, run_ranks, unwatched

__all__ = ["gradients", "parameters", "run_adam", "sharded_adam", "updated"]

Shapes = Sequence[Sequence[int]]
Options = Mapping[str, Any]


def parameters(shapes: Shapes, seed: int, gain: float) -> list[nn.Parameter]:
    """Return the float32 parameters that each rank starts with: `gain` times normal values."""
    return [nn.Parameter(_normal(shape, seed + n).mul_(gain)) for n, shape in enumerate(shapes)]


def gradients(
    shapes: Shapes, step: int, missing: Sequence[Sequence[int]], seed: int, gain: float
) -> list[Tensor | None]:
    """Return a step's gradients, the same on all ranks; None for the numbers in `missing[step]`.

    They are normally distributed, times `gain`.
    """
    first = 1000 * seed + 100 * step + 50
    return [
        None if n in missing[step] else _normal(shape, first + n).mul_(gain)
        for n, shape in enumerate(shapes)
    ]


def _normal(shape: Sequence[int], seed: int) -> Tensor:
    return torch.randn(tuple(shape), generator=torch.Generator().manual_seed(seed))


def updated(
    optimizer: Callable[..., Any],
    shapes: Shapes,
    missing: Sequence[Sequence[int]],
    options: Options,
    seed: int,
    gain: float = 1.0,
    changed: set[int] | None = None,
    *,
    clears: bool = False,
    after_step: Callable[[Sequence[nn.Parameter]], object] = lambda params: None,
) -> tuple[Any, list[nn.Parameter]]:
    """Make `optimizer(params, **options)` and take a step for each item of `missing`.

    `params` is an iterator, like a module's parameters(). `changed` receives the numbers of
    parameters whose gradient a step changed. With `clears`, zero_grad() is called between steps.
    """
    params = parameters(shapes, seed, gain)
    made = optimizer(iter(params), **options)
    for step in range(len(missing)):
        if clears and step:
            made.zero_grad()
        _give(params, gradients(shapes, step, missing, seed, gain))
        made.step()
        after_step(params)
        if changed is not None:
            as_given = gradients(shapes, step, missing, seed, gain)
            pairs = zip(params, as_given, strict=True)
            changed |= {n for n, (p, given) in enumerate(pairs) if not _are_equal(p.grad, given)}
    return made, params


def _give(params: Sequence[nn.Parameter], gradients: Sequence[Tensor | None]) -> None:
    for p, gradient in zip(params, gradients, strict=True):
        p.grad = gradient


def _are_equal(a: Tensor | None, b: Tensor | None) -> bool:
    return a is b if a is None or b is None else torch.equal(a, b)


def run_adam(
    optimizer: Callable[..., Any],
    world: int,
    shapes: Shapes,
    missing: Sequence[Sequence[int]],
    options: Options,
    seed: int,
    gain: float = 1.0,
    *,
    large: bool = False,
    measure: bool = True,
    ask: Ask = unwatched,
) -> dict[str, Any]:
    """Take a step for each item of `missing`, which lists the parameters without a gradient.

    Before a small run, another optimizer takes a step on its own parameters. Returns for each of
    the `ranks` its parameters afterwards, the numbers of those whose gradients a step `changed`,
    whether zero_grad() then left a gradient, and whether torch still `records` gradients. A `large`
    run returns only the sums of its parameters, and calls zero_grad() between steps, which must
    keep the moments. With `measure`, also returns each rank's `held_bytes` once parameters and
    gradients are freed but the optimizer isn't.
    """
    given = (optimizer, shapes, missing, options, seed, gain, large, measure)
    found = run_ranks(_stepped, world, *given, ask=ask)
    return {
        "ranks": [
            {name: rank[name] for name in ("params", "changed", "left", "records")}
            for rank in found
        ],
        **figures_of(found, "held_bytes"),
    }


sharded_adam = probing("ShardedAdam", run_adam)


def _stepped(
    optimizer: Callable[..., Any],
    shapes: Shapes,
    missing: Sequence[Sequence[int]],
    options: Options,
    seed: int,
    gain: float,
    large: bool,
    measure: bool,
) -> dict[str, Any]:
    given = (shapes, missing, options, seed, gain)
    made: list[Any] = []
    run = partial(_large_run if large else _small_run, optimizer, given, made)
    return metered(run, measure=measure, keep=made.copy)


def _small_run(optimizer: Callable[..., Any], given: Any, made: list[Any]) -> dict[str, Any]:
    shapes, missing, options, seed, gain = given
    changed: set[int] = set()
    updated(optimizer, shapes, missing[:1], options, seed + 1, gain)
    one, params = updated(optimizer, shapes, missing, options, seed, gain, changed)
    made.append(one)
    told = arrays_of(params)
    one.zero_grad()
    left = any(p.grad is not None and bool(p.grad.any()) for p in params)
    records = torch.is_grad_enabled()
    return {"params": told, "changed": sorted(changed), "left": left, "records": records}


def _large_run(optimizer: Callable[..., Any], given: Any, made: list[Any]) -> dict[str, Any]:
    """Take the steps, and free parameters and gradients.

    An optimizer that recognised the last step could free its moments in time. So every step ends
    with everything that student code might notice through attributes or finalizers.
    """
    told: list[float] = []

    def after_step(params: Sequence[nn.Parameter]) -> None:
        told[:] = [p.sum().item() for p in params]
        for p in params:
            p.grad = None
        gc.collect()

    one, params = updated(optimizer, *given, clears=True, after_step=after_step)
    made.extend((one, params))  # all must live until the grader has measured
    with torch._C.DisableTorchFunctionSubclass():
        for p in params:
            _free(p)
    return {"params": told, "changed": [], "left": False, "records": torch.is_grad_enabled()}


def _free(p: nn.Parameter) -> None:
    """Free a parameter's memory even if views of it remain."""
    # Not through p's own attributes, which a student may have replaced.
    storage = Tensor.untyped_storage(p)
    if storage.resizable() and storage.nbytes() == p.nbytes:
        storage.resize_(0)
        Tensor.detach(p)  # the meter notices at the next operator
    p.data = torch.empty(0)
