"""find_the_leak: losses that keep their graphs, and with them each step's 16-bit copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from autograder.content.leaks import Leak, leak_task
from autograder.content.meter_tampering import NO_METER_TAMPERING
from peakmem.probes.lab07.leak import low_precision_training

__all__ = ["find_the_leak", "train_low"]

# One row per batch: with more, 16-bit and 32-bit losses would be nearly equal.
_BATCHES, _ROWS, _WIDTH = 12, 1, 512
_AT_ONCE = 5.0  # times the masters: these, copies and gradients, and all updates at once
_SLACK_BYTES = 2**18
_LAST_BITS = 2.0**-20  # of a float32, as a relative change

Batches = Sequence[tuple[Tensor, Tensor]]


def train_low(
    masters: Sequence[Tensor],
    batches: Batches,
    lr: float,
    *,
    dtype: torch.dtype = torch.bfloat16,
    step: float = 1.0,
    low_product: bool = False,
    nudge: float = 1.0,
) -> list[float]:
    """Train float32 masters on copies in `dtype`; return the losses.

    `step` scales the update, `low_product` computes it in `dtype`, and `nudge` scales the copies.
    """
    losses = []
    for x, y in batches:
        copies = [(nudge * master).to(dtype, copy=True).requires_grad_() for master in masters]
        output = torch.relu(x.to(dtype) @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        gradients = torch.autograd.grad(loss, copies)
        for master, gradient in zip(masters, gradients, strict=True):
            update = gradient * (step * lr) if low_product else gradient.float() * (step * lr)
            master.sub_(update.float())
        losses.append(loss.item())
    return losses


def _one_set(
    masters: Sequence[Tensor], batches: Batches, lr: float, *, refreshed: bool, reset: bool
) -> list[float]:
    """Make the mistake of training on one set of copies, made before the first step.

    `refreshed` copies follow the masters; `reset` ones start each step without gradients.
    """
    copies = [master.bfloat16().requires_grad_() for master in masters]
    losses = []
    for x, y in batches:
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        for master, low in zip(masters, copies, strict=True):
            assert low.grad is not None
            master.sub_(low.grad.float() * lr)
            if refreshed:
                low.data.copy_(master)
            if reset:
                low.grad = None
        losses.append(loss.item())
    return losses


def _masters_replaced(masters: Sequence[Tensor], batches: Batches, lr: float) -> list[float]:
    return train_low([master.clone() for master in masters], batches, lr)


def _batches_used_up(masters: Sequence[Tensor], batches: list[Any], lr: float) -> list[float]:
    losses = train_low(masters, batches, lr)
    batches.clear()
    return losses


def _sizes(rng: np.random.Generator, n_batches: int, rows: int, width: int) -> dict[str, int]:
    seed = int(rng.integers(2**31))
    return {"n_batches": n_batches, "rows": rows, "width": width, "seed": seed}


def _small(rng: np.random.Generator) -> dict[str, int]:
    """Draw a run that reveals a product computed in bfloat16, but allows updates in another order.

    Both change the last bits of some masters, or more. A master midway between two bfloat16 numbers
    may then be copied to the other one, so that losses differ.
    """
    while True:
        sizes = _sizes(rng, 6, 2, int(rng.integers(4, 9)))
        right, moved = (_losses(sizes, nudge=1 + by) for by in (-_LAST_BITS, _LAST_BITS))
        rounded = _losses(sizes, low_product=True)
        if np.allclose(right, moved, rtol=1e-5) and not np.allclose(right, rounded, rtol=1e-3):
            return sizes


def _losses(sizes: Mapping[str, int], **slip: Any) -> list[float]:
    found = low_precision_training(partial(train_low, **slip), **sizes)
    return cast("list[float]", found["losses"])


def _masters(count: float, slack_bytes: int = 0) -> Callable[[Mapping[str, Any]], int]:
    return lambda sizes: int(count * 2 * 4 * sizes["width"] ** 2) + slack_bytes


def _last_left_out(masters: Sequence[Tensor], batches: Batches, lr: float) -> list[float]:
    return train_low(masters, batches[:-1], lr)


find_the_leak = leak_task(
    Leak(
        lab="lab07",
        function="train_low",
        work=low_precision_training,
        reference=train_low,
        small=_small,
        large=lambda rng: _sizes(rng, _BATCHES, _ROWS, _WIDTH),
        most_bytes=_masters(_AT_ONCE, _SLACK_BYTES),
        large_rtol=2e-3,  # some of half a million weights lie midway
        scratch_bytes=3 * 2**20,  # for 16-bit products on a CPU; a leak of 12 steps takes 24 MiB
        mutants={
            "product_in_low": lambda m, b, lr: train_low(m, b, lr, low_product=True),
            "runs_in_float32": lambda m, b, lr: train_low(m, b, lr, dtype=torch.float32),
            "masters_stand_still": lambda m, b, lr: train_low(m, b, lr, step=0.0),
            "steps_uphill": lambda m, b, lr: train_low(m, b, lr, step=-1.0),
            "last_batch_left_out": _last_left_out,
            "batches_changed": _batches_used_up,
            "masters_replaced": _masters_replaced,
            "copies_made_once": partial(_one_set, refreshed=False, reset=False),
            "copies_stale": partial(_one_set, refreshed=False, reset=True),
            "gradients_add_up": partial(_one_set, refreshed=True, reset=False),
        },
        leaks={"copies_of_each_step": _masters(6)},
        mistakes={
            "copies_of_each_step": "Earlier steps' copies and gradients are still alive. A loss "
            "has a graph, which holds its leaves and their gradients: keep only the number, "
            "loss.item(), and no list of copies.",
            "product_in_low": "You compute lr * gradient in bfloat16, where it is rounded. "
            "Convert the gradient to float32 first, as in the given code.",
            "runs_in_float32": "Your losses are float32's. Run forward and backward on bfloat16 "
            "copies of the masters, as in the given code.",
            "masters_stand_still": "Your masters don't move. Update the masters, not the copies, "
            "which the next step replaces.",
            "steps_uphill": "Your masters go uphill: subtract lr times the gradient.",
            "last_batch_left_out": "Your list has one loss too few: the last batch is missing.",
            "batches_changed": "Your function changes the batches, or takes them out of the list. "
            "They are the caller's: change the masters only.",
            "masters_replaced": "Your losses are right, but the given masters don't move: "
            "`masters[i] = ...` puts a new tensor into the list. Change the tensor itself, as "
            "`master -= ...` does.",
            "copies_made_once": "You make the copies only once, before the first step. They don't "
            "follow the masters, and backward adds to their old gradients. Round the masters "
            "again in each step.",
            "copies_stale": "You make the copies only once, so they don't follow the masters. "
            "Round the masters again in each step.",
            "gradients_add_up": "Your copies keep the gradients of earlier steps, and backward "
            "adds to them. Set each .grad to None after the update.",
        },
    ),
    ban=NO_METER_TAMPERING,
)
