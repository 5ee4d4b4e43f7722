"""torch's own versions of what exercises build are refused while they run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import distributed
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils import checkpoint as torch_checkpoint

from peakmem.core.errors import RankError
from peakmem.probes.lab04 import run_in_segments
from peakmem.probes.lab07 import loss_scaler
from peakmem.probes.lab08 import data_parallel, ring_all_reduce
from peakmem.probes.lab10 import tiled_backward
from peakmem.probes.own_work import refuse_calls_from, refusing_operators, refusing_optimizers


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
        refusing_optimizers(),
        pytest.raises(RuntimeError, match=r"torch.optim does this exercise for you"),
    ):
        adam.step()
    adam.step()


def test_an_optimizers_fused_operator_is_refused_without_its_class() -> None:
    p, grad, m, v, step = (torch.ones(2) for _ in range(5))
    options = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-8}
    lists = ([p], [grad], [m], [v], [], [step.sum()])
    with (
        refusing_optimizers(),
        pytest.raises(RuntimeError, match=r"aten::_fused_adam_ does this exercise for you"),
    ):
        torch._fused_adam_(*lists, **options, amsgrad=False, maximize=False)


# The probes of exercises that refuse a tool, each on a solution that uses it.


def test_segments_may_not_be_torchs_checkpoints() -> None:
    def with_torchs(layers, x, segment_length):
        for layer in layers:
            x = torch_checkpoint.checkpoint(layer, x, use_reentrant=False)
        return x

    student = SimpleNamespace(run_in_segments=with_torchs)
    sizes = {"n_layers": 2, "segment_length": 1, "rows": 2, "columns": 3}
    with pytest.raises(RuntimeError, match=r"torch.utils.checkpoint does this exercise"):
        run_in_segments(student, **sizes, seed=1)


def test_a_scaler_may_not_be_torchs() -> None:
    student = SimpleNamespace(LossScaler=lambda initial: torch.amp.GradScaler("cpu", initial))
    with pytest.raises(RuntimeError, match=r"_amp_\w+ does this exercise"):
        loss_scaler(student, settings={"initial": 8.0}, gradients=[[[1.0], [1.0, 2.0]]])


def test_an_all_reduce_around_a_ring_may_not_be_torchs() -> None:
    student = SimpleNamespace(ring_all_reduce=distributed.all_reduce)
    with pytest.raises(RankError, match="c10d::allreduce_ does this exercise"):
        ring_all_reduce(student, world=2, lengths=[4], seed=1, metered=False)


def test_replicas_may_not_be_torchs() -> None:
    student = SimpleNamespace(DataParallel=DistributedDataParallel)
    with pytest.raises(RankError, match=r"torch.nn.parallel.distributed does this exercise"):
        data_parallel(student, world=2, width=3, passes=1, seed=1, metered=False)
