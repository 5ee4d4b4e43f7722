"""Probes of lab 10's tiled attention: results, gradients, saved bytes, and the peak."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from peakmem.probes import Namespace
from peakmem.probes.arrays import array_of, gradient_arrays
from peakmem.probes.lab10.figures import kept_after, metered_rise, sums
from peakmem.probes.own_work import refusing_operators

__all__ = ["CALLS", "run_attention", "run_backward", "tiled_attention", "tiled_backward"]

Attention = Callable[..., Tensor]  # (q, k, v, block, causal) -> output

CALLS = 16  # in the kind "many", all before the first backward
_FUSED = "scaled_dot_product"  # torch's own attention, forward and backward
_TINY = {"batch": 1, "heads": 1, "seq": 5, "head_dim": 2, "block": 2}


def _queries_keys_values(
    batch: int, heads: int, seq: int, head_dim: int, seed: int, dtype: str, gain: float
) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, heads, seq, head_dim)
    kind = getattr(torch, dtype)
    q, k, v = (torch.randn(shape, generator=generator, dtype=kind) for _ in range(3))
    return [q.mul_(gain), k, v]


@refusing_operators(_FUSED)
def tiled_attention(
    student: Namespace, large: bool = False, metered: bool = True, **case: Any
) -> dict[str, Any]:
    """Call the student's `tiled_attention`; see `run_attention`."""
    if large:
        run_attention(student.tiled_attention, large=True, metered=False, **{**case, **_TINY})
        gc.collect(1)
    return run_attention(student.tiled_attention, large=large, metered=metered, **case)


def run_attention(
    attention: Attention,
    large: bool,
    metered: bool,
    batch: int,
    heads: int,
    seq: int,
    head_dim: int,
    block: int,
    causal: bool,
    seed: int,
    dtype: str = "float32",
    gain: float = 1.0,
    by_default: bool = False,
) -> dict[str, Any]:
    """Call `attention(q, k, v, block, causal)` on random tensors (batch, heads, seq, head_dim).

    Queries are multiplied by `gain`; `by_default` omits causal. A small run returns `output` as it
    is after another call, its `dtype`, and the arguments that the call `changed`. A `large` run
    returns `sums` of the output, and if `metered`, `rise_bytes`, the rise of live bytes beyond q, k
    and v.
    """
    given = _queries_keys_values(batch, heads, seq, head_dim, seed, dtype, gain)
    found: dict[str, Any] = {}
    if large:

        def run() -> None:
            output = attention(*given, block, causal)
            found["sums"] = sums(output)

        return {**metered_rise(run, *given, metered=metered), **found}
    before = [tensor.clone() for tensor in given]
    output = attention(*given, block) if by_default else attention(*given, block, causal)
    attention(*(1 - tensor for tensor in given), block, causal)
    return {
        "output": array_of(output),
        "dtype": str(output.dtype).removeprefix("torch."),
        "changed": [
            name
            for name, now, then in zip("qkv", given, before, strict=True)
            if not torch.equal(now, then)
        ],
    }


@refusing_operators(_FUSED)
def tiled_backward(
    student: Namespace, kind: str, metered: bool = True, **case: Any
) -> dict[str, Any]:
    """Run `TiledAttention.apply` and backward; see `run_backward`."""
    attention = student.TiledAttention.apply
    if kind != "small":
        run_backward(attention, kind, False, **{**case, **_TINY})
        gc.collect(1)
    return run_backward(attention, kind, metered, **case)


def run_backward(
    attention: Attention,
    kind: str,
    metered: bool,
    batch: int,
    heads: int,
    seq: int,
    head_dim: int,
    block: int,
    causal: bool,
    seed: int,
    dtype: str = "float32",
    gain: float = 1.0,
) -> dict[str, Any]:
    """Run `attention(q, k, v, block, causal)` and backward from a weighted sum of its output.

    The kind "small" returns `output` and `gradients`, with another call between forward and
    backward. "kept" also returns `kept_bytes`, the bytes live after forward but not before, without
    the output, in tensors, arrays and large Python objects. "one", "many", which sums several calls
    before the first backward, and "kept" return `sums` of output and gradients, and the first two,
    if `metered`, `rise_bytes`.
    """
    given = _queries_keys_values(batch, heads, seq, head_dim, seed, dtype, gain)
    leaves = [tensor.requires_grad_() for tensor in given]
    q = given[0].detach()
    weights = torch.linspace(-1, 1, q.numel(), dtype=q.dtype).view(q.shape)
    if kind == "kept":
        others = [(1 - leaf.detach()).requires_grad_() for leaf in leaves]
        runs = [_kept(attention, each, weights, block, causal) for each in (leaves, others)]
        return {
            "kept_bytes": min(kept for kept, _ in runs),
            "sums": [part for _, of_run in runs for part in of_run],
        }
    found: dict[str, Any] = {}

    def run() -> None:
        total = attention(*leaves, block, causal)
        if kind == "small":
            others = [(1 - leaf.detach()).requires_grad_() for leaf in leaves]
            attention(*others, block + 1, not causal)
        for number in range(1, CALLS if kind == "many" else 1):
            # Other queries in each call, so that none can use what another one keeps.
            total = total + attention(leaves[0] * (1 + number / CALLS), *leaves[1:], block, causal)
        (total * weights).sum().backward()  # type: ignore[no-untyped-call]
        found["output"] = total.detach()

    rise = metered_rise(run, *leaves, weights, metered=metered and kind != "small")
    if kind == "small":
        return {
            "output": array_of(found["output"]),
            "gradients": gradient_arrays(leaves),
        }
    there = [found["output"], *(leaf.grad for leaf in leaves if leaf.grad is not None)]
    return {**rise, "sums": [part for tensor in there for part in sums(tensor)]}


def _kept(
    attention: Attention, leaves: list[Tensor], weights: Tensor, block: int, causal: bool
) -> tuple[int, list[Any]]:
    """The bytes kept for backward, and the sums of the output and of what backward makes of them.

    Without the backward, a solution that recognises this call could keep nothing.
    """
    kept, output = kept_after(lambda: attention(*leaves, block, causal), *leaves)
    (output * weights).sum().backward()  # type: ignore[no-untyped-call]
    there = [output.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]
    return kept, [part for tensor in there for part in sums(tensor)]
