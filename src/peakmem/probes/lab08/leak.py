"""Lab 8's leak: sharded layers whose gathered weights aren't freed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from peakmem.probes import Namespace
from peakmem.probes.ranks import Ask, metered, run_ranks, unwatched

__all__ = ["find_the_leak", "inputs", "run_layers", "weights"]

Layers = Callable[[Tensor, Sequence[Tensor]], tuple[Tensor, Tensor]]


def weights(number: int, layers: int, width: int, seed: int) -> Tensor:
    """Return the whole weights of one of the layers, (width, width)."""
    generator = torch.Generator().manual_seed(seed * layers + number)
    return torch.randn(width, width, generator=generator).mul_(width**-0.5)


def inputs(width: int) -> Tensor:
    """Return the layers' input, (4, width)."""
    return torch.linspace(-1, 1, 4 * width).view(4, width)


def find_the_leak(
    student: Namespace,
    metered: bool = True,
    ask: Ask = unwatched,
    **sizes: int,
) -> dict[str, Any]:
    """Run the student's `replicated_by_mistake`; see `run_layers`."""
    return run_layers(student.replicated_by_mistake, measure=metered, ask=ask, **sizes)


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
    found = run_ranks(_run, world, function, layers, width, seed, measure, ask=ask)
    return {
        "results": [{name: rank[name] for name in ("output", "diagonals")} for rank in found],
        **({"rise_bytes": max(rank["rise_bytes"] for rank in found)} if measure else {}),
        **({"numpy_rise_bytes": 0} if measure else {}),
    }


def _run(function: Layers, layers: int, width: int, seed: int, measure: bool) -> dict[str, Any]:
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()

    def share(number: int) -> Tensor:
        return weights(number, layers, width, seed).flatten().tensor_split(world)[rank].clone()

    def run() -> dict[str, Any]:
        shards = [share(number) for number in range(layers)]
        x = inputs(width)
        function(x, shards)  # the second call below shows if this one changed x or the shards
        output, diagonals = function(x, shards)
        return {"output": output.numpy().copy(), "diagonals": diagonals.numpy().copy()}

    return metered(run, measure=measure)
