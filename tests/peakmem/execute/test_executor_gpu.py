"""Plans with copies on a GPU: gradients of an ordinary step, and the allocator's peak as simulated.

A chain's times say when copies begin. They are made up here, so that links of three speeds give
three orders on any GPU.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from peakmem.execute.executor import run
from peakmem.measure.measure_chain import chain_of
from peakmem.measure.meter import MemoryMeter
from peakmem.plan.chain import Chain
from peakmem.plan.offload import joint, with_offload
from peakmem.plan.rotor import least_peak
from peakmem.plan.segments import keep_all
from peakmem.plan.simulator import simulate

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


def stack() -> tuple[nn.Sequential, torch.Tensor]:
    torch.manual_seed(0)
    blocks = [
        nn.Sequential(nn.Linear(512, width), nn.GELU(), nn.Linear(width, 512))
        for width in (1024, 2048, 4096, 2048, 1024, 4096)
    ]
    return nn.Sequential(*blocks).cuda(), torch.randn(4096, 512, device="cuda")


def with_even_times(chain: Chain) -> Chain:
    stages = (replace(s, forward_time=1.0, backward_time=2.0) for s in chain.stages)
    return replace(chain, stages=tuple(stages))


@pytest.mark.parametrize("planner", [with_offload, joint])
@pytest.mark.parametrize("stages_a_time", [0.5, 1.0, 4.0])
def test_copies_on_a_gpu_keep_gradients_and_the_simulated_peak(planner, stages_a_time) -> None:
    layers, inputs = stack()
    layers(inputs).sum().backward()
    expected = [parameter.grad.clone() for parameter in layers.parameters()]
    chain = with_even_times(chain_of(layers, inputs))
    link = stages_a_time * max(stage.saved_bytes for stage in chain.stages)
    least, most = (simulate(chain, p(chain)).peak_bytes for p in (least_peak, keep_all))
    plan = planner(chain, (least + most) // 2, link)
    assert plan.copies
    for _ in range(3):
        layers.zero_grad()
        run(plan, layers, inputs, chain)
    for parameter, gradient in zip(layers.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-3)
    layers.zero_grad()
    expected.clear()
    before = torch.cuda.memory_stats()["requested_bytes.all.current"] - chain.input_bytes
    with MemoryMeter("cuda").track(inputs) as meter:
        run(plan, layers, inputs, chain)
    assert meter.peak_bytes - before == pytest.approx(simulate(chain, plan).peak_bytes, rel=0.02)
