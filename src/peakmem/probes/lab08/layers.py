"""Probe of lab 8's sharded layers: outputs before and after updates, the peak, and the traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from peakmem.probes.lab08.gradients import samples
from peakmem.probes.ranks import Ask, figures_of, probing, run_metered, unwatched

__all__ = ["layers_of", "run_sharded", "sharded_layers", "trained"]

_SAMPLES = 2  # per rank and step

Wrap = Callable[[list[nn.Module]], Any]


def layers_of(
    width: int, count: int, order: Sequence[int], seed: int, *, nested: bool = False
) -> list[nn.Module]:
    """Return `count` layers in this order, some of them possibly twice, with tanh after each.

    With `nested`, the second layer consists of two, one of which has no bias.
    """
    torch.manual_seed(seed)
    made: list[nn.Module] = [nn.Linear(width, width) for _ in range(count)]
    if nested:
        made[1] = nn.Sequential(nn.Linear(width, 2, bias=False), nn.Linear(2, width))
    return [part for number in order for part in (made[number], nn.Tanh())]


def trained(
    model: Callable[..., Any],
    params: Sequence[nn.Parameter],
    width: int,
    ranks: Iterable[int],
    steps: int,
    seed: int,
    times: int = 1,
) -> list[Any]:
    """Take `steps` of gradient descent with momentum on the samples of `ranks`.

    The loss is multiplied by `times`. Returns, step by step, a part of the output for each rank's
    first sample.
    """
    # Without torch's optimizer, because the first one in a process spends a second on imports.
    momenta: dict[nn.Parameter, Tensor] = {}
    outputs = []
    for step in range(steps):
        x = torch.cat([samples(width, step, rank, seed) for rank in ranks])
        output = model(x)
        outputs.append(output.detach()[::_SAMPLES, :8].tolist())
        (times * output.square().sum(1).mean()).backward()
        for p in params:
            if p.grad is not None:
                _descend(p, momenta)
    return outputs


@torch.no_grad()
def _descend(p: nn.Parameter, momenta: dict[nn.Parameter, Tensor]) -> None:
    assert p.grad is not None
    before = momenta.pop(p, None)
    momenta[p] = p.grad if before is None else before.mul_(0.9).add_(p.grad)
    p.grad = None
    p.sub_(momenta[p], alpha=0.1)


def run_sharded(
    wrap: Wrap,
    world: int,
    width: int,
    count: int,
    order: Sequence[int],
    steps: int,
    seed: int,
    *,
    nested: bool = False,
    measure: bool = True,
    ask: Ask = unwatched,
) -> dict[str, Any]:
    """Train the parameters() of `wrap(layers)`, each rank on its own samples.

    Returns `outputs`, parts of each rank's outputs in each step, and `shards`, the number of values
    in each of its parameters. With `measure`, also returns the `rise_bytes` of the rank with the
    highest peak, and each rank's `sent_bytes`.
    """
    given = (wrap, width, count, order, steps, seed, nested)
    found = run_metered(_trained, world, *given, measure=measure, ask=ask)
    return {
        "outputs": [rank["outputs"] for rank in found],
        "shards": [rank["shards"] for rank in found],
        **figures_of(found, "rise_bytes", "sent_bytes"),
    }


sharded_layers = probing("ShardedLayers", run_sharded)


def _trained(
    wrap: Wrap, width: int, count: int, order: Sequence[int], steps: int, seed: int, nested: bool
) -> dict[str, Any]:
    model = wrap(layers_of(width, count, order, seed, nested=nested))
    params = list(model.parameters())
    outputs = trained(model, params, width, [dist.get_rank()], steps, seed)
    return {"outputs": [of_step[0] for of_step in outputs], "shards": [p.numel() for p in params]}
