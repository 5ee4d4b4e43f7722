"""Probe of lab 4's selective recomputation: a block's saved bytes and its operators."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from peakmem.measure.meter import MemoryMeter
from peakmem.measure.reference_models import GPT
from peakmem.probes import Namespace
from peakmem.probes.arrays import array_of, gradient_arrays
from peakmem.probes.hooks import hooks_on
from peakmem.probes.kept import forget_objects, kept_bytes, objects_traced
from peakmem.probes.lab04.figures import count_of

__all__ = ["attention_block", "recompute_attention_only", "run_attention", "settings_of"]

Call = Callable[..., Any]

_RESULTS = ("outputs", "gradients")


def attention_block(d_model: int, n_heads: int, length: int) -> nn.Module:
    """Return one transformer block with standard attention and no dropout, in training mode.

    It has norm1, attention, norm2 and mlp, and computes a = x + attention(norm1(x)), then
    a + mlp(norm2(a)).
    """
    shape = SimpleNamespace(n_layers=1, d_model=d_model, n_heads=n_heads, vocab=2, context=length)
    return GPT(shape, attention="standard").blocks[0]


def recompute_attention_only(student: Namespace, **case: Any) -> dict[str, Any]:
    """Run a block through the student's `recompute_attention_only`; see `run_attention`."""
    return run_attention(student.recompute_attention_only, **case)


def run_attention(
    run: Call, seed: int, batch: int, length: int, d_model: int, n_heads: int
) -> dict[str, Any]:
    """Run `run(block, x)` and backward under the meter.

    Returns `kept_bytes` (live after forward but not before, without the output: in tensors, arrays
    and large Python objects), how often each operator ran in total: `softmax`, `gelu`, `addmm`
    (linear layers), and `fused` (torch's attention in one operator), and whether the block is
    `unchanged`. `run` is called twice, and the call that kept less counts. Also returns the
    `outputs` and the `gradients` of both calls, which have different blocks and inputs: what the
    first call keeps must not serve the second.
    """
    with objects_traced():
        runs = [_run_once(run, seed ^ n, batch, length, d_model, n_heads) for n in range(2)]
    least = min(runs, key=lambda figures: int(figures["kept_bytes"]))
    both = {name: [part for one in runs for part in one.pop(name)] for name in _RESULTS}
    return {**least, **both}


def _run_once(
    run: Call, seed: int, batch: int, length: int, d_model: int, n_heads: int
) -> dict[str, Any]:
    torch.manual_seed(seed)
    block = attention_block(d_model, n_heads, length)
    x = torch.randn(batch, length, d_model, requires_grad=True)
    before = settings_of(block)
    forget_objects()
    with MemoryMeter("cpu").track(x, block) as meter:
        out = run(block, x)
        kept = kept_bytes(meter, out)
        out.square().sum().backward()
    leaves = [x, *block.parameters()]
    return {
        "outputs": [array_of(out)],
        "gradients": gradient_arrays(leaves),
        "kept_bytes": kept,
        "softmax": count_of("_softmax", meter),
        "gelu": count_of("gelu", meter),
        "addmm": count_of("addmm", meter),
        "fused": sum("scaled_dot_product" in name for name, _ in meter.timeline),
        "unchanged": settings_of(block) == before,
    }


def settings_of(block: nn.Module) -> list[dict[str, Any]]:
    """Return each part's attributes, its forward, which may be replaced, and its hook count."""
    return [
        {**vars(part), "forward": part.forward, "hooks": hooks_on(part)} for part in block.modules()
    ]
