"""find_the_leak: sharded layers whose gathered weights stay, in a list and in views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autograder.content.lab08.forbidden import NO_WRAPPERS
from autograder.content.leaks import Leak, leak_task
from peakmem.probes.lab08.leak import inputs, weights

__all__ = ["find_the_leak", "passed"]

_LARGE = {"world": 2, "layers": 8, "width": 768}
_ACTIVATIONS = 2**20 // 10

Whole = Callable[[Tensor, Sequence[Tensor]], tuple[Tensor, Tensor]]


def passed(
    x: Tensor,
    layers: Sequence[Tensor],
    *,
    activation: Callable[[Tensor], Tensor] = torch.relu,
    transposed: bool = False,
    of: Callable[[Tensor], Tensor] = torch.diagonal,
) -> tuple[Tensor, Tensor]:
    """Return x after all layers, and the diagonals, computed from whole weights.

    Each option turns it into one of the mistakes.
    """
    diagonals = []
    for w in layers:
        x = activation(x @ (w.T if transposed else w))
        diagonals.append(of(w).clone())
    return x, torch.stack(diagonals)


def _one_view(x: Tensor, layers: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    output, diagonals = passed(x, layers)
    return output, diagonals[-1:].expand_as(diagonals).contiguous()


def _on_all_ranks(
    function: Whole, world: int, layers: int, width: int, seed: int
) -> list[dict[str, Any]]:
    whole = [weights(number, layers, width, seed) for number in range(layers)]
    output, diagonals = function(inputs(width), whole)
    return [{"output": output.numpy(), "diagonals": diagonals.numpy()} for _ in range(world)]


def _sizes(rng: np.random.Generator) -> dict[str, int]:
    width = 6 * int(rng.integers(2, 4))  # in narrower layers, relu sometimes leaves only zeros
    # The large run has 2 ranks.
    return {"world": 3, "layers": int(rng.integers(2, 5)), "width": width, "seed": _seed(rng)}


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _layers(count: float) -> Callable[[Mapping[str, Any]], int]:
    """All shards of a rank, some whole layers, and room for activations."""

    def most(sizes: Mapping[str, Any]) -> int:
        layer = 4 * sizes["width"] ** 2
        return int(layer * (sizes["layers"] / sizes["world"] + count)) + _ACTIVATIONS

    return most


find_the_leak = leak_task(
    Leak(
        lab="lab08",
        function="replicated_by_mistake",
        work=_on_all_ranks,
        reference=passed,
        small=_sizes,
        large=lambda rng: {**_LARGE, "seed": _seed(rng)},
        most_bytes=_layers(3),
        scratch_bytes=4 * _LARGE["width"] ** 2,  # gloo gathers into a copy
        mutants={
            "no_activation": lambda *a: passed(*a, activation=lambda x: x),
            "transposed": lambda *a: passed(*a, transposed=True),
            "first_rows": lambda *a: passed(*a, of=lambda w: w[0]),
            "views_of_one_buffer": _one_view,
        },
        leaks={"all_gathered": _layers(7), "some_gathered": _layers(3)},
        mistakes={
            "all_gathered": "All layers' whole weights are alive: a list holds them, or views of "
            "them, such as diagonals. Gather a layer, use it, clone() the part you keep, and free "
            "the layer before you gather the next.",
            "some_gathered": "More is alive at once than you need: a list or views hold several "
            "whole layers, or you have the shards twice. Free each layer before you gather the "
            "next, and clone() every diagonal, but nothing else.",
            "no_activation": "Each layer ends in relu, as in the given code.",
            "transposed": "The product is x @ w, as in the given code.",
            "first_rows": "The second result must be the diagonals, not the first rows.",
            "views_of_one_buffer": "All your diagonals are the last layer's: they are views of a "
            "buffer that the next layer overwrites. clone() each.",
        },
    ),
    ban=NO_WRAPPERS,
    ranks=True,
)
