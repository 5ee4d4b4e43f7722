"""Tests of the meter, the host tier and executed plans that need a CUDA GPU.

`course.py gpu` runs this file with only torch and pytest installed, so it needs nothing else.
"""

from __future__ import annotations

import pytest
import torch

from peakmem.core.errors import OutOfMemory
from peakmem.execute.host_memory import HostTier
from peakmem.measure.meter import MemoryMeter, measure
from peakmem.measure.trace import trace
from peakmem.specs.ledger import Ledger

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


def test_cuda_figures_are_the_allocators_requested_bytes() -> None:
    before = torch.cuda.memory_stats()["requested_bytes.all.current"]
    with MemoryMeter("cuda") as meter:
        a = torch.zeros(1000, device="cuda")  # 4000 bytes, which the allocator rounds up
        with MemoryMeter("cuda") as inner:
            b = a + a
            del b
    assert meter.baseline_bytes == before
    assert meter.live_bytes == before + 4000
    assert meter.peak_bytes == inner.peak_bytes == before + 8000
    with pytest.raises(OutOfMemory, match="budget"), MemoryMeter("cuda", meter.live_bytes):
        a.clone()


def test_the_ledgers_peak_is_the_meters() -> None:
    layer = torch.nn.Linear(1024, 1024, device="cuda")
    x = torch.ones(64, 1024, device="cuda")
    layer(x).sum().backward()  # libraries take their workspaces
    with MemoryMeter("cuda").track(layer, x) as meter:
        layer(x).sum().backward()
    assert meter.ledger().peak_bytes == meter.peak_bytes
    assert meter.peak_operation != "start"


def test_a_traced_step_has_the_peak_of_the_real_one() -> None:
    def build_step(device: torch.device):
        layers = [torch.nn.Linear(1024, 1024, device=device) for _ in range(4)]
        model = torch.nn.Sequential(*layers)
        adam = torch.optim.Adam(model.parameters())
        x = torch.ones(512, 1024, device=device)

        def step() -> None:
            adam.zero_grad()
            model(x).square().mean().backward()
            adam.step()

        return step

    measured = measure(build_step, "cuda")
    without = Ledger(
        tuple(t for t in measured.tensors if "workspace of cuda" not in t.name), measured.events
    )
    assert trace(build_step, "torch-cuda").peak_bytes == pytest.approx(
        without.peak_bytes, rel=0.002
    )


def test_a_tensor_of_a_gpu_waits_in_pinned_memory() -> None:
    host = HostTier()
    tensor = torch.arange(1000.0, device="cuda").bfloat16()
    handle = host.put(tensor)
    place = host._places[handle]
    assert isinstance(place, torch.Tensor)
    assert place.is_pinned()
    back = host.get(handle)
    assert back.device == tensor.device
    assert torch.equal(back, tensor)
    host.write(handle, tensor + 1)
    assert torch.equal(host.get(handle), tensor + 1)
    assert list(host._folder.iterdir()) == []
