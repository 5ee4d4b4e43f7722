"""Probe of lab 8's replicas: their initial weights, gradients, and communication."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import distributed

from peakmem.measure.traffic import written_bytes
from peakmem.probes import Namespace
from peakmem.probes.arrays import array_of
from peakmem.probes.own_work import refuse_calls_from
from peakmem.probes.ranks import Ask, figures_of, run_metered, sent_since, unwatched

__all__ = ["Branches", "batch", "data_parallel", "loss", "run_replicas", "told"]

Wrap = Callable[[nn.Module], Any]


class Branches(nn.Module):
    """Two layers with a buffer between them, an unused third layer, and a buffer of integers."""

    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first = nn.Linear(width, 2 * width + 1)
        self.second = nn.Sequential(nn.Linear(2 * width + 1, 3))
        self.unused = nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.rand(1) + 0.5)
        self.fixed = nn.Parameter(torch.randn(3), requires_grad=False)
        self.register_buffer("offset", torch.randn(2 * width + 1))
        self.register_buffer("count", torch.randint(10**6, (1,)))
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(x) + self.offset)
        output: Tensor = self.scale * self.second(hidden) + self.fixed
        return output


def batch(width: int, number: int, rank: int, seed: int) -> Tensor:
    """Return a rank's samples of one backward pass, (4, width)."""
    generator = torch.Generator().manual_seed(1000 * seed + 10 * number + rank)
    return torch.randn(4, width, generator=generator, dtype=torch.float64)


def loss(output: Tensor) -> Tensor:
    """Return a mean over the samples."""
    return output.square().sum(1).mean()


def told(tensor: Tensor | None, brief: bool) -> Any:
    """Return a tensor as an array, or only its sum and norm, because results count as traffic."""
    if tensor is None:
        return None
    if brief:
        return [tensor.sum().item(), tensor.double().norm().item()]
    return array_of(tensor)


def data_parallel(
    student: Namespace,
    metered: bool = True,
    ask: Ask = unwatched,
    **run: Any,
) -> dict[str, Any]:
    """Wrap a model in the student's `DataParallel`; see `run_replicas`."""
    wrap = student.DataParallel

    def by_hand(module: nn.Module) -> Any:
        module.register_forward_pre_hook(lambda *_: refuse_calls_from(distributed))
        return wrap(module)

    return run_replicas(by_hand, measure=metered, ask=ask, **run)


def run_replicas(
    wrap: Wrap,
    world: int,
    width: int,
    passes: int,
    seed: int,
    quiet: int = 0,
    *,
    brief: bool = False,
    measure: bool = True,
    ask: Ask = unwatched,
) -> dict[str, Any]:
    """Wrap a model of each rank, and call backward `passes` times on the rank's own samples.

    The first `quiet` passes are within no_sync(), two in each block. Unless the run is `brief`,
    several passes come after another pass and zero_grad(), which must have no effect. Returns for
    each of the `ranks` its `start`, the model's tensors by name after wrapping, and its `gradients`
    at the end, both through `told`. If some passes are quiet and the run isn't `brief`, `beside` is
    another replica's gradient after a pass within no_sync() of the first one. With `measure`, also
    returns each rank's `sent_bytes`, and its `quiet_sent_bytes`, those sent within no_sync().
    """
    given = (wrap, width, passes, seed, quiet, brief)
    found = run_metered(_trained, world, *given, measure=measure, ask=ask)
    names = ("start", "gradients", "beside")
    ranks = [{name: rank[name] for name in names if name in rank} for rank in found]
    figures = ("sent_bytes", "quiet_sent_bytes") if measure else ()
    return {"ranks": ranks, **figures_of(found, *figures)}


def _trained(
    wrap: Wrap, width: int, passes: int, seed: int, quiet: int, brief: bool
) -> dict[str, Any]:
    rank = torch.distributed.get_rank()
    model = Branches(width, seed + rank)
    wrapped = wrap(model)
    start = {name: told(tensor, brief) for name, tensor in model.state_dict().items()}

    def add_up(numbers: Iterable[int]) -> None:
        for number in numbers:
            x = batch(width, number, rank, seed)
            loss(wrapped(x)).backward()  # type: ignore[no-untyped-call]

    if passes > 1 and not brief:
        add_up([passes])
        model.zero_grad()
    beside = {}
    if quiet and not brief:
        other = nn.Linear(1, 1, bias=False)
        replica = wrap(other)
        with wrapped.no_sync():
            replica(torch.tensor([[float(rank)]])).sum().backward()
        beside["beside"] = None if other.weight.grad is None else other.weight.grad.item()
    before = written_bytes()
    for first in range(0, quiet, 2):
        with wrapped.no_sync():
            add_up(range(first, min(first + 2, quiet)))
    quiet_sent = sent_since(before)
    add_up(range(quiet, passes))
    gradients = {name: told(p.grad, brief) for name, p in model.named_parameters()}
    return {"start": start, "gradients": gradients, **beside, "quiet_sent_bytes": quiet_sent}
