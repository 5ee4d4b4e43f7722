"""find_the_leak: a gradient through int8 layers, for which autograd keeps every float copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from autograder.content.leaks import Leak, leak_task
from autograder.content.meter_tampering import NO_METER_TAMPERING
from peakmem.probes.lab09.leak import gradient_through

__all__ = ["find_the_leak", "quantized_step"]

_LAYERS, _ROWS, _WIDTH = 16, 8, 768
_COPIES = 4  # of one layer's weight in float32, including room for the rows
_SCRATCH_BYTES = 2**21  # a matrix product packs parts of its operands

_LAST_CODES = (
    "Your backward uses the last layer's codes for all layers, because it reads the loop variable "
    "when it runs. Pass each layer its own codes, as arguments or in its ctx."
)

Layers = Sequence[tuple[Tensor, Tensor]]


def quantized_step(
    layers: Layers,
    x: Tensor,
    *,
    dtype: torch.dtype = torch.float32,
    between: Callable[[Tensor], Tensor] = torch.relu,
) -> Tensor:
    """Run x through int8 layers and back, and return the loss; options are mistakes."""

    def layer(x: Tensor, codes: Tensor, scale: Tensor) -> Tensor:
        weight = codes.to(dtype) * scale.to(dtype)
        return between(x.to(dtype) @ weight.T).float()

    output = x
    for codes, scale in layers:
        output = checkpoint(layer, output, codes, scale, use_reentrant=False)
    loss = output.square().mean()
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach()


def _without_gradient(layers: Layers, x: Tensor) -> Tensor:
    return quantized_step(layers, x.detach().clone().requires_grad_())


def _last_codes(layers: Layers, x: Tensor, *, relu_apart: bool = False) -> Tensor:
    """Recompute with the loop's variable, which is the last layer by the time backward runs.

    With `relu_apart`, only the products are recomputed, and each relu's mask is right.
    """
    current = layers[0]

    def product(x: Tensor) -> Tensor:
        y = x @ (current[0].float() * current[1]).T
        return y if relu_apart else torch.relu(y)

    output = x
    for current in layers:  # noqa: B007 product reads it
        y = checkpoint(product, output, use_reentrant=False)
        output = torch.relu(y) if relu_apart else y
    loss = output.square().mean()
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach()


def _last_left_out(layers: Layers, x: Tensor) -> Tensor:
    return quantized_step(layers[:-1], x)


def _sizes(rng: np.random.Generator, n_layers: int, rows: int, width: int) -> dict[str, int]:
    seed = int(rng.integers(2**31))
    return {"n_layers": n_layers, "rows": rows, "width": width, "seed": seed}


def _small(rng: np.random.Generator) -> dict[str, int]:
    return _sizes(rng, *(int(rng.integers(low, low + 4)) for low in (2, 3, 9)))


def _copies(count: float) -> Callable[[Mapping[str, Any]], int]:
    """All codes in int8, and some weights in float32."""
    return lambda sizes: int((sizes["n_layers"] + 4 * count) * sizes["width"] ** 2)


find_the_leak = leak_task(
    Leak(
        lab="lab09",
        function="quantized_step",
        work=gradient_through,
        reference=quantized_step,
        small=_small,
        large=lambda rng: _sizes(rng, _LAYERS, _ROWS, _WIDTH),
        most_bytes=_copies(_COPIES),
        scratch_bytes=_SCRATCH_BYTES,
        mutants={
            "no_gradient": _without_gradient,
            "half_precision": lambda layers, x: quantized_step(layers, x, dtype=torch.bfloat16),
            "last_layer_left_out": _last_left_out,
            "last_codes": _last_codes,
            "last_codes_in_products": partial(_last_codes, relu_apart=True),
            "no_relu": lambda layers, x: quantized_step(layers, x, between=lambda x: x),
        },
        leaks={"copies_stay": _copies(_LAYERS), "some_copies_stay": _copies(_COPIES)},
        mistakes={
            "copies_stay": "Every layer's float copy is alive at the peak: in your list or "
            "closure, or in the graph, which saves it for the gradient of x. Decode it again in "
            "backward.",
            "some_copies_stay": "More float copies than one layer needs are alive at once. Make "
            "one from its codes where it is needed, and free it right after.",
            "no_gradient": "x.grad is missing: the gradient must reach the given x.",
            "half_precision": "Your copies are in 16 bits, which changes the results. The leak is "
            "their number, not the size of each.",
            "last_layer_left_out": "Your loop stops one layer early.",
            "no_relu": "The relu after each layer is missing.",
            "last_codes": _LAST_CODES,
            "last_codes_in_products": _LAST_CODES,
        },
    ),
    ban=NO_METER_TAMPERING,
)
