"""torch's own versions of what exercises build are refused while they run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F
from torch.utils import checkpoint as torch_checkpoint

from peakmem.probes.lab10 import tiled_backward
from peakmem.probes.own_work import refuse_calls_from, refusing_operators, refusing_operators_from


def watched(x: torch.Tensor) -> torch.Tensor:
    refuse_calls_from(torch_checkpoint)
    return x.exp()


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_function_that_torchs_checkpoint_calls_knows_it(use_reentrant: bool) -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"torch.utils.checkpoint does this exercise for you"):
        torch_checkpoint.checkpoint(watched, x, use_reentrant=use_reentrant)
    watched(x).sum().backward()
    assert x.grad is not None


def test_torchs_attention_is_refused_and_its_parts_are_not() -> None:
    q = torch.ones(1, 1, 3, 2, requires_grad=True)
    with refusing_operators("scaled_dot_product"):
        ((q @ q.mT).softmax(-1) @ q).sum().backward()
        with pytest.raises(RuntimeError, match=r"aten::_scaled_dot_product_\w+ does this exercise"):
            F.scaled_dot_product_attention(q, q, q)


def test_torchs_attention_is_refused_in_backward_too() -> None:
    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v, block, causal):
            ctx.save_for_backward(q, k, v)
            return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v

        @staticmethod
        def backward(ctx, gradient):
            given = [t.detach().requires_grad_() for t in ctx.saved_tensors]
            with torch.enable_grad():
                output = F.scaled_dot_product_attention(*given)
            return (*torch.autograd.grad(output, given, gradient), None, None)

    sizes = {"batch": 1, "heads": 1, "seq": 4, "head_dim": 2, "block": 2, "causal": False}
    with pytest.raises(RuntimeError, match=r"scaled_dot_product_\w+ does this exercise"):
        tiled_backward(SimpleNamespace(TiledAttention=Attention), "small", **sizes, seed=1)


@pytest.mark.parametrize("options", [{"fused": True}, {"foreach": True}, {"foreach": False}])
def test_torchs_optimizers_are_refused_until_the_block_ends(options: dict[str, bool]) -> None:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(2)
    adam = torch.optim.Adam([x], **options)
    with (
        refusing_operators_from(torch.optim),
        pytest.raises(RuntimeError, match=r"torch.optim does this exercise for you"),
    ):
        adam.step()
    adam.step()
