"""Probes of lab 9's rounding with a gradient: fake_quant and ternary_linear."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from peakmem.probes import Calls, Namespace, Outcomes, call_each
from peakmem.probes.lab09.values import on_tensors

__all__ = ["fake_quant", "ternary_linear"]


def fake_quant(student: Namespace, calls: Calls) -> Outcomes:
    """Call `fake_quant(x, bits)` for each (x, bits, upstream), and run backward from `upstream`.

    Another call comes between forward and backward, and must not affect them. A value is a dict of
    the `value` and the `gradient` of x.
    """

    def call(x: Tensor, bits: int, upstream: Tensor) -> dict[str, Any]:
        leaf = x.clone().requires_grad_()
        out = student.fake_quant(leaf, bits)
        student.fake_quant((1 - leaf.detach()).requires_grad_(), bits)
        out.backward(upstream)
        _show_changes(x, leaf)
        return {"value": out.detach(), "gradient": _gradient(leaf)}

    return call_each(on_tensors(call), calls)


def ternary_linear(student: Namespace, calls: Calls) -> Outcomes:
    """Call `ternary_linear(x, weight)` for each (x, weight, upstream), and run backward.

    Another call comes between forward and backward, and must not affect them. A value is a dict of
    the `value`, and the gradients of `x` and `weight`.
    """

    def call(x: Tensor, weight: Tensor, upstream: Tensor) -> dict[str, Any]:
        leaves = [x.clone().requires_grad_(), weight.clone().requires_grad_()]
        out = student.ternary_linear(*leaves)
        student.ternary_linear(*((1 - leaf.detach()).requires_grad_() for leaf in leaves))
        out.backward(upstream)
        _show_changes(x, leaves[0])
        _show_changes(weight, leaves[1])
        return {"value": out.detach(), "x": _gradient(leaves[0]), "weight": _gradient(leaves[1])}

    return call_each(on_tensors(call), calls)


def _show_changes(given: Tensor, leaf: Tensor) -> None:
    """Copy anything that a student's function wrote into a leaf to the argument, to reveal it."""
    if not torch.equal(given, leaf):
        given.copy_(leaf.detach())


def _gradient(leaf: Tensor) -> Any:
    return "no gradient" if leaf.grad is None else leaf.grad
