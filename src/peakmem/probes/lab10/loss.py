"""Probe of lab 10's chunked cross-entropy: loss, gradients, and the peak."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from peakmem.probes import Namespace, as_sent
from peakmem.probes.arrays import gradient_arrays
from peakmem.probes.lab10.figures import metered_rise, sums
from peakmem.probes.own_work import refusing_operators

__all__ = ["chunked_cross_entropy", "run_loss"]

IGNORED = -100
_TINY = {"tokens": 5, "vocab": 7, "width": 3, "chunk": 2}

Loss = Callable[..., Tensor]  # (x, weight, targets, chunk) -> the mean over counted tokens


def chunked_cross_entropy(
    student: Namespace, large: bool = False, metered: bool = True, **case: Any
) -> dict[str, Any]:
    """Call the student's `chunked_cross_entropy` and run backward; see `run_loss`."""
    if large:
        run_loss(student.chunked_cross_entropy, True, False, **{**case, **_TINY})
        gc.collect(1)
    return run_loss(student.chunked_cross_entropy, large, metered, **case)


@refusing_operators("linear_cross_entropy")  # torch's own
def run_loss(
    loss_of: Loss,
    large: bool,
    metered: bool,
    tokens: int,
    vocab: int,
    width: int,
    chunk: int,
    seed: int,
    ignored: str = "none",
    factor: float = 1.0,
    gain: float = 1.0,
    dtype: str = "float32",
) -> dict[str, Any]:
    """Call `loss_of(x, weight, targets, chunk)`, multiply by `factor`, and run backward.

    Shapes: x (tokens, width), multiplied by `gain`; weight (vocab, width); targets (tokens,).
    `ignored` says which targets are -100: "none", "some" or "first" (more than the first chunk, and
    some others). A small run returns the `loss`, both `gradients`, with another call between
    forward and backward, and whether targets were `changed`. A `large` run returns their `sums`,
    and if `metered`, `rise_bytes` beyond x and weight.
    """
    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, dtype)
    x = torch.randn(tokens, width, generator=generator, dtype=kind).mul_(gain).requires_grad_()
    weight = torch.randn(vocab, width, generator=generator, dtype=kind).requires_grad_()
    targets = torch.randint(vocab, (tokens,), generator=generator)
    if ignored != "none":
        targets[torch.rand(tokens, generator=generator) < 0.4] = IGNORED
        targets[: chunk + 1 if ignored == "first" else 1] = IGNORED
        targets[-1] = 0  # so that at least one target counts
    found: dict[str, Any] = {}
    before = targets.clone()

    def run() -> None:
        loss = loss_of(x, weight, targets, chunk)
        found["loss"] = as_sent(loss.detach())
        if not large:
            others = [(1 - leaf.detach()).requires_grad_() for leaf in (x, weight)]
            loss_of(*others, targets.clone(), chunk)
        (factor * loss).backward()  # type: ignore[no-untyped-call]

    rise = metered_rise(run, x, weight, targets, metered=metered and large)
    if large:
        gradients = [x.grad, weight.grad]
        found["sums"] = [part for g in gradients if g is not None for part in sums(g)]
        return {**rise, **found}
    found["changed"] = not torch.equal(targets, before)
    found["gradients"] = gradient_arrays([x, weight])
    return found
