"""Probe of lab 10's few-bit GELU: result, derivative, and saved bytes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from peakmem.probes import Namespace
from peakmem.probes.arrays import array_of
from peakmem.probes.lab10.figures import kept_after, metered_rise, sums

__all__ = ["LAYERS", "few_bit_gelu", "run_gelu", "upstream_of", "values_of"]

Gelu = Callable[[Tensor, int], Tensor]

LAYERS = 24  # in the kind "many", all before backward


def values_of(shape: list[int], seed: int) -> Tensor:
    """Return the x of a seed: float32, normally distributed."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float32)


def upstream_of(shape: list[int], seed: int) -> Tensor:
    """Return the upstream gradient of a seed: float32, and independent of `values_of`."""
    return values_of(shape, seed + 1)


def few_bit_gelu(
    student: Namespace, kind: str, metered: bool = True, **case: Any
) -> dict[str, Any]:
    """Call the student's `few_bit_gelu` and run backward; see `run_gelu`."""
    if kind != "values":
        run_gelu(student.few_bit_gelu, kind, False, **{**case, "shape": [3, 5]})
        gc.collect(1)
    return run_gelu(student.few_bit_gelu, kind, metered, **case)


def run_gelu(
    gelu: Gelu, kind: str, metered: bool, shape: list[int], bits: int, seed: int
) -> dict[str, Any]:
    """Call `gelu(x, bits)` on normally distributed values, and run backward.

    The kind "values" returns `output`, `derivative` (the gradient of the output's sum, with another
    call between forward and backward), and the `gradient` for the seed's `upstream_of`. "kept"
    returns `kept_bytes`, the bytes live after forward but not before, without x and the output, in
    tensors, arrays and large Python objects, once the operator's input is freed; `sums` of the
    output; and `gradient_sums`. "many" sums several GELUs before the first backward; it returns
    `sums` of result and gradient, and if `metered`, `rise_bytes`.
    """
    x = values_of(shape, seed).requires_grad_()
    if kind == "values":
        output = gelu(x, bits)
        for other in (bits, 6 - bits if bits != 1 else 2):
            gelu((1 - x.detach()).requires_grad_(), other)
        (derivative,) = torch.autograd.grad(output.sum(), x)
        (gradient,) = torch.autograd.grad(gelu(x, bits), x, upstream_of(shape, seed))
        arrays = {"output": output, "derivative": derivative, "gradient": gradient}
        return {name: array_of(tensor) for name, tensor in arrays.items()}
    if kind == "kept":
        runs = [_kept(gelu, values_of(shape, seed + 2 * n), bits, seed + 2 * n) for n in range(2)]
        return {
            "kept_bytes": min(kept for kept, *_ in runs),
            "sums": [part for _, output, _ in runs for part in sums(output)],
            "gradient_sums": [part for *_, gradient in runs for part in sums(gradient)],
        }
    found: list[Tensor] = []

    def run() -> None:
        total = torch.zeros_like(x)
        for number in range(LAYERS):
            total = total + gelu(_blended(x, seed + 2 + number), bits)
        total.sum().backward()  # type: ignore[no-untyped-call]
        found.append(total.detach())

    rise = metered_rise(run, x, metered=metered)
    if x.grad is not None:
        found.append(x.grad)
    return {**rise, "sums": [part for tensor in found for part in sums(tensor)]}


def _kept(gelu: Gelu, x: Tensor, bits: int, seed: int) -> tuple[int, Tensor, Tensor]:
    """The bytes kept for backward, the output, and what backward makes of them.

    Without the backward, a solution that recognises this call could keep nothing.
    """
    x.requires_grad_()
    kept, output = kept_after(lambda: gelu(_blended(x, seed + 1), bits), x)
    (gradient,) = torch.autograd.grad(output.sum(), x)
    return kept, output, gradient


def _blended(x: Tensor, seed: int) -> Tensor:
    """Return x plus noise, normally distributed too; backward could compute nothing else from x.

    The leaf x stays alive anyway, and so would serve in place of the codes.
    """
    return (x + values_of(list(x.shape), seed)).mul_(0.5**0.5)
