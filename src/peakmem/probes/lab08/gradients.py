"""Probe of lab 8's sharded gradients: which rank keeps which, and the peak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from peakmem.probes import Namespace
from peakmem.probes.ranks import Ask, metered, run_ranks, unwatched

__all__ = ["RATE", "chain", "run_gradients", "samples", "shard_gradients"]

RATE = 0.5  # of gradient descent

Shard = Callable[[nn.Module], Any]


def chain(widths: Sequence[int], seed: int) -> nn.Sequential:
    """Return linear layers of these widths, from one to the next, with tanh behind each."""
    torch.manual_seed(seed)
    model = nn.Sequential()
    for before, after in pairwise(widths):
        model.extend([nn.Linear(before, after), nn.Tanh()])
    return model


def samples(width: int, step: int, rank: int, seed: int) -> Tensor:
    """Return a rank's samples of one step, (2, width)."""
    generator = torch.Generator().manual_seed(1000 * seed + 10 * step + rank)
    return torch.randn(2, width, generator=generator)


def shard_gradients(
    student: Namespace,
    world: int,
    widths: Sequence[int],
    steps: int,
    seed: int,
    large: bool = False,
    metered: bool = True,
    ask: Ask = unwatched,
) -> dict[str, Any]:
    """Train with the student's `shard_gradients`; see `run_gradients`."""
    given = (student.shard_gradients, world, widths, steps, seed)
    return run_gradients(*given, large=large, measure=metered, ask=ask)


def run_gradients(
    shard: Shard,
    world: int,
    widths: Sequence[int],
    steps: int,
    seed: int,
    *,
    large: bool = False,
    measure: bool = True,
    ask: Ask = unwatched,
) -> dict[str, Any]:
    """Take `steps` of gradient descent on a chain of layers; who has a gradient updates and sends.

    Returns for each of the `ranks` the numbers of the parameters of which it `has` a gradient after
    each backward, and the parameters at the end, of a `large` run their sums; and, if it
    `measure`s, `rise_bytes` of the rank where tensors took the most, parameters included.
    """
    found = run_ranks(_descended, world, shard, widths, steps, seed, large, measure, ask=ask)
    return {
        "ranks": [{name: rank[name] for name in ("has", "params")} for rank in found],
        **({"rise_bytes": max(rank["rise_bytes"] for rank in found)} if measure else {}),
    }


def _descended(
    shard: Shard, widths: Sequence[int], steps: int, seed: int, large: bool, measure: bool
) -> dict[str, Any]:
    def run() -> dict[str, Any]:
        model = chain(widths, seed)
        handle = shard(model)
        params = list(model.parameters())
        has = []
        for step in range(steps):
            x = samples(widths[0], step, dist.get_rank(), seed)
            model(x).square().sum(1).mean().backward()
            has.append([n for n, p in enumerate(params) if p.grad is not None])
            _update(params)
        del handle  # it lives as long as its training
        told = [p.sum().item() if large else p.detach().numpy().copy() for p in params]
        return {"has": has, "params": told}

    return metered(run, measure=measure)


@torch.no_grad()
def _update(params: Sequence[nn.Parameter]) -> None:
    """Each parameter is updated by the first rank that has its gradient, which sends it to all."""
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = torch.tensor([rank if p.grad is not None else world for p in params])
    dist.all_reduce(mine, op=dist.ReduceOp.MIN)
    for p, owner in zip(params, mine.tolist(), strict=True):
        if owner == rank and p.grad is not None:
            p.sub_(p.grad, alpha=RATE)
        p.grad = None
        if owner < world:
            dist.broadcast(p.data, owner)
