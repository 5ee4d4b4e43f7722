"""Lab 8's leak: sharded layers whose gathered weights aren't freed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from peakmem.probes.arrays import array_of
from peakmem.probes.ranks import Ask, figures_of, probing, run_metered, unwatched

__all__ = ["find_the_leak", "inputs", "run_layers", "weights"]

Layers = Callable[[Tensor, Sequence[Tensor]], tuple[Tensor, Tensor]]


def weights(number: int, layers: int, width: int, seed: int) -> Tensor:
    """Return the whole weights of one of the layers, (width, width)."""
    generator = torch.Generator().manual_seed(seed * layers + number)
    return torch.randn(width, width, generator=generator).mul_(width**-0.5)


def inputs(width: int) -> Tensor:
    """Return the layers' input, (4, width)."""
    return torch.linspace(-1, 1, 4 * width).view(4, width)


def run_layers(
    function: Layers,
    world: int,
    layers: int,
    width: int,
    seed: int,
    *,
    measure: bool = True,
    ask: Ask = unwatched,
) -> dict[str, Any]:
    """Call `function(x, shards)` in each rank, with its shards of the layers' weights.

    `world` must divide width * width.

    Returns `results`, each rank's output and diagonals from a second call. With `measure`, also
    returns the `rise_bytes` of the rank with the highest peak, including shards.
    """
    found = run_metered(_run, world, function, layers, width, seed, measure=measure, ask=ask)
    return {
        "results": [{name: rank[name] for name in ("output", "diagonals")} for rank in found],
        **figures_of(found, "rise_bytes"),
        **({"numpy_rise_bytes": 0} if measure else {}),
    }


find_the_leak = probing("replicated_by_mistake", run_layers)


def _run(function: Layers, layers: int, width: int, seed: int) -> dict[str, Any]:
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    shards = [
        weights(number, layers, width, seed).flatten().tensor_split(world)[rank].clone()
        for number in range(layers)
    ]
    x = inputs(width)
    function(x, shards)  # the second call below shows if this one changed x or the shards
    output, diagonals = function(x, shards)
    return {"output": array_of(output), "diagonals": array_of(diagonals)}
