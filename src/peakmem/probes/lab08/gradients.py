"""Probe of lab 8's sharded gradients: which rank keeps which gradient, and the peak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from peakmem.probes.arrays import array_of
from peakmem.probes.ranks import Ask, figures_of, probing, run_metered, unwatched

__all__ = ["RATE", "chain", "run_gradients", "samples", "shard_gradients", "uneven"]

RATE = 0.5  # of gradient descent

Shard = Callable[[nn.Module], Any]


def chain(widths: Sequence[int], seed: int, *, nested: bool = False) -> nn.Sequential:
    """Return linear layers from each width to the next, with tanh after each.

    With `nested`, an activation with parameters replaces the first tanh, and the last layer is in
    its own module.
    """
    torch.manual_seed(seed)
    model = nn.Sequential()
    for before, after in pairwise(widths):
        layer = nn.Linear(before, after)
        # Ranks' gradients must differ, so their samples must matter even after many layers.
        nn.init.normal_(layer.weight, std=before**-0.5)
        model.extend([layer, nn.Tanh()])
    if nested:
        model[1] = nn.PReLU(widths[1])
        model[-2] = nn.Sequential(model[-2])
    return model


def uneven(width: int) -> list[int]:
    """Return widths of 24 layers, of which ten are large: 0 to 5, 8, 12, 16 and 20.

    So neither every fourth layer nor a consecutive fourth of them has a fourth of the parameters.
    """
    return [width] * 7 + [8] + [width] * 2 + ([8] * 2 + [width] * 2) * 3 + [8] * 3


def samples(width: int, step: int, rank: int, seed: int) -> Tensor:
    """Return a rank's samples for one step, (2, width)."""
    generator = torch.Generator().manual_seed(1000 * seed + 10 * step + rank)
    return torch.randn(2, width, generator=generator)


def run_gradients(
    shard: Shard,
    world: int,
    widths: Sequence[int],
    steps: int,
    seed: int,
    *,
    large: bool = False,
    nested: bool = False,
    measure: bool = True,
    ask: Ask = unwatched,
) -> dict[str, Any]:
    """Take `steps` of gradient descent on a chain; ranks with a gradient update and send weights.

    Returns for each of the `ranks` the numbers of the parameters that it `has` gradients for after
    each backward, and the parameters at the end (their sums for a `large` run). With `measure`,
    also returns the `rise_bytes` of the rank with the highest peak, including parameters.
    """
    given = (shard, widths, steps, seed, large, nested)
    found = run_metered(_descended, world, *given, measure=measure, ask=ask)
    return {
        "ranks": [{name: rank[name] for name in ("has", "params")} for rank in found],
        **figures_of(found, "rise_bytes"),
    }


shard_gradients = probing("shard_gradients", run_gradients)


def _descended(
    shard: Shard, widths: Sequence[int], steps: int, seed: int, large: bool, nested: bool
) -> dict[str, Any]:
    model = chain(widths, seed, nested=nested)
    handle = shard(model)
    params = list(model.parameters())
    has = []
    for step in range(steps):
        x = samples(widths[0], step, dist.get_rank(), seed)
        model(x).square().sum(1).mean().backward()
        has.append([n for n, p in enumerate(params) if p.grad is not None])
        _update(params)
    del handle  # it must live as long as the training
    told = [p.sum().item() if large else array_of(p) for p in params]
    return {"has": has, "params": told}


@torch.no_grad()
def _update(params: Sequence[nn.Parameter]) -> None:
    """Update each parameter on the first rank with its gradient, and broadcast it."""
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = torch.tensor([rank if p.grad is not None else world for p in params])
    dist.all_reduce(mine, op=dist.ReduceOp.MIN)
    for p, owner in zip(params, mine.tolist(), strict=True):
        if owner == rank and p.grad is not None:
            p.sub_(p.grad, alpha=RATE)
        p.grad = None
        if owner < world:
            dist.broadcast(p.data, owner)
