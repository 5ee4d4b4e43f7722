"""The meter against torch's own MemTracker, against arithmetic, and in awkward company."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.distributed._tools.mem_tracker import MemTracker
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.checkpoint import checkpoint

from peakmem import OutOfMemory
from peakmem.measure.meter import MemoryMeter, measure_call

KIB = 1024


def kib(n: int) -> torch.Tensor:
    """A CPU tensor of n KiB."""
    return torch.zeros(n * KIB, dtype=torch.uint8)


ONE_KIB = kib(1)


class Block(nn.Module):
    """Attention and an MLP over a normalised input: views, softmax, matmuls, an in-place op."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(inplace=True))
        self.out = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        x = x + torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v
        return x + self.out(self.mlp(x))


class Net(nn.Module):
    def __init__(self, checkpointed: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.blocks = nn.ModuleList([Block(16) for _ in range(3)])
        self.checkpointed = checkpointed

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return nn.functional.cross_entropy(x.flatten(0, 1), tokens.flatten())


def training_step(
    checkpointed: bool, micro_batches: int, optimizer: str
) -> tuple[Net, torch.optim.Optimizer, torch.Tensor, Callable[[Callable[[], None]], None]]:
    """A fresh model, its optimizer, its tokens, and two training steps of them."""
    torch.manual_seed(0)
    net = Net(checkpointed)
    kinds = {"foreach": {"foreach": True}, "fused": {"fused": True}, "for-loop": {"foreach": False}}
    adam = torch.optim.Adam(net.parameters(), **kinds[optimizer])
    tokens = torch.randint(0, 11, (4, 7))

    def run(between: Callable[[], None]) -> None:
        for _ in range(2):
            adam.zero_grad()
            for micro_batch in tokens.chunk(micro_batches):
                net(micro_batch).backward()
                between()
            adam.step()

    return net, adam, tokens, run


@pytest.mark.parametrize("optimizer", ["for-loop", "foreach", "fused"])
@pytest.mark.parametrize("micro_batches", [1, 2])
@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_training_step_equals_torchs_own_tracker_to_the_byte(
    checkpointed: bool, micro_batches: int, optimizer: str
) -> None:
    net, adam, tokens, run = training_step(checkpointed, micro_batches, optimizer)
    tracker = MemTracker()
    tracker.track_external(net, adam, tokens)
    cpu = torch.device("cpu")
    with warnings.catch_warnings(), tracker:
        warnings.simplefilter("ignore")  # of its module hooks; they have no say in the totals
        run(tracker.reset_mod_stats)
    expected_peak = tracker.get_tracker_snapshot("peak")[cpu]["Total"]
    expected_live = tracker.get_tracker_snapshot("current")[cpu]["Total"]

    net, adam, tokens, run = training_step(checkpointed, micro_batches, optimizer)
    with MemoryMeter("cpu").track(net, adam, tokens) as meter:
        run(lambda: None)
    assert meter.peak_bytes == expected_peak
    assert meter.live_bytes == expected_live


def test_the_step_without_its_gradients_zeroed_is_told_from_the_one_with() -> None:
    # The comparison above can fail: 4 bytes of a scalar more or less are seen.
    net, adam, tokens, run = training_step(False, 1, "for-loop")
    with MemoryMeter("cpu").track(net, adam, tokens) as meter:
        run(lambda: None)
        extra = torch.zeros(1)
        run(lambda: None)
    with MemoryMeter("cpu").track(net, adam, tokens) as without:
        run(lambda: None)
    assert meter.live_bytes - without.live_bytes == extra.nbytes


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), max_size=30))
@settings(max_examples=40, deadline=None)
def test_live_and_peak_follow_any_order_of_making_and_dropping(
    moves: list[tuple[int, int]],
) -> None:
    held: dict[int, torch.Tensor] = {}
    sizes: dict[int, int] = {}
    levels = [KIB]
    with MemoryMeter("cpu").track(ONE_KIB) as meter:
        for slot, size in moves:
            if slot in held:
                del held[slot], sizes[slot]
            else:
                held[slot], sizes[slot] = kib(size), size * KIB
            levels.append(ONE_KIB.nbytes + sum(sizes.values()))
            assert meter.live_bytes == levels[-1]
    assert meter.peak_bytes == max(levels)
    assert meter.baseline_bytes == levels[0]


def test_a_storage_counts_once_whole_and_as_long_as_a_view_of_it_lives() -> None:
    with MemoryMeter("cpu") as meter:
        x = kib(4)
        y = x[:KIB].view(2, -1)
        y.add_(1)
        assert meter.live_bytes == 4 * KIB
        del x
        assert meter.live_bytes == 4 * KIB
        del y
        assert meter.live_bytes == 0
    assert meter.peak_bytes == 4 * KIB


def test_what_was_there_before_counts_only_if_it_is_handed_over() -> None:
    parameter, other = nn.Parameter(torch.zeros(KIB)), torch.zeros(KIB)
    parameter.grad = torch.zeros(KIB)
    with MemoryMeter("cpu").track([parameter, (parameter.data,)], {"g": parameter.grad}) as meter:
        parameter.data.add_(other.view(-1))
        other.mul_(2)
        assert meter.live_bytes == meter.baseline_bytes == 8 * KIB
        parameter.grad = None
        assert meter.live_bytes == 4 * KIB


def test_modules_and_optimizers_are_handed_over_with_all_that_they_own() -> None:
    norm = nn.BatchNorm1d(64)  # 2 x 64 parameters, 2 x 64 running statistics, 1 counter
    norm(torch.randn(4, 64)).sum().backward()
    adam = torch.optim.Adam(norm.parameters(), foreach=False)
    adam.step()
    with MemoryMeter("cpu").track(norm) as of_module:
        pass
    assert of_module.baseline_bytes == 4 * (2 + 2 + 2) * 64 + 8
    with MemoryMeter("cpu").track(norm, adam) as of_both:
        pass
    assert of_both.baseline_bytes == of_module.baseline_bytes + 4 * (2 * 2 * 64 + 2)


def test_every_way_to_make_a_tensor_is_counted() -> None:
    with MemoryMeter("cpu") as meter:
        made = [
            torch.tensor([1.0, 2.0]),
            torch.FloatTensor(3),
            torch.zeros(5).new(7),
            copy.deepcopy(torch.zeros(11)),
            torch.empty(0).set_(torch.zeros(13)),
        ]
        assert meter.live_bytes == 4 * (2 + 3 + 7 + 11 + 13)
        made[1].resize_(17)
        assert meter.live_bytes == 4 * (2 + 17 + 7 + 11 + 13)
        made.clear()
        assert meter.live_bytes == 0


def test_a_wrapper_counts_what_it_wraps() -> None:
    a, b = torch.zeros(8), torch.zeros(8)
    with MemoryMeter("cpu") as meter:
        wrapped = TwoTensor(a, b) * 2
        assert meter.live_bytes == 2 * 8 * 4
        del wrapped
        assert meter.live_bytes == 0


def test_a_sparse_tensor_is_refused_with_the_remedy() -> None:
    with pytest.raises(NotImplementedError, match="sparse=False"), MemoryMeter("cpu"):
        torch.zeros(3).to_sparse()


def test_memory_in_a_reference_cycle_is_live_until_it_is_collected() -> None:
    gc.collect()
    with MemoryMeter("cpu").track(ONE_KIB) as meter:
        cycle = [kib(2)]
        cycle.append(cycle)  # type: ignore[arg-type]
        del cycle
        assert meter.live_bytes >= 2 * KIB
        gc.collect()
        assert meter.live_bytes < 2 * KIB


def test_operators_of_backward_are_seen_and_keep_their_names() -> None:
    x = torch.ones(KIB, requires_grad=True)
    with MemoryMeter("cpu").track(x) as meter:
        loss = (x * x).sum()
        forward = len(meter.timeline)
        loss.backward()
    assert meter.timeline[0] == ("start", 4 * KIB)
    assert meter.timeline[1] == ("aten::mul.Tensor", 8 * KIB)
    assert meter.timeline[-1] == ("end", meter.live_bytes)
    assert any(name.startswith("aten::mul") for name, _ in meter.timeline[forward:])
    assert max(live for _, live in meter.timeline) == meter.peak_bytes
    assert x.grad is not None
    assert meter.live_bytes == x.nbytes + x.grad.nbytes + loss.nbytes


def test_meters_nest_and_each_counts_its_own_block() -> None:
    with MemoryMeter("cpu") as outer:
        a = kib(1)
        with MemoryMeter("cpu").track(a) as inner:
            b = kib(2)
            del b
        c = kib(1)
        with pytest.raises(OutOfMemory), MemoryMeter("cpu", budget_bytes=KIB):
            kib(5)
    assert (inner.baseline_bytes, inner.peak_bytes, inner.live_bytes) == (KIB, 3 * KIB, KIB)
    assert (outer.peak_bytes, outer.live_bytes) == (7 * KIB, a.nbytes + c.nbytes)


def test_figures_stay_as_they_were_at_the_end_of_the_block() -> None:
    with MemoryMeter("cpu") as meter:
        a = kib(3)
    del a
    kib(9)
    assert (meter.live_bytes, meter.peak_bytes) == (3 * KIB, 3 * KIB)


def test_the_budget_stops_the_operator_that_breaks_it_and_leaves_nothing_behind() -> None:
    with MemoryMeter("cpu", budget_bytes=4 * KIB) as meter:
        a = kib(4)  # just fits
        with pytest.raises(OutOfMemory, match="aten::clone") as caught:
            a.clone()
        assert (caught.value.needed_bytes, caught.value.budget_bytes) == (8 * KIB, 4 * KIB)
        assert meter.live_bytes == 4 * KIB
        a.add_(1)  # and what fits goes on
    with MemoryMeter("cpu") as fresh:
        kib(8)
    assert fresh.peak_bytes == 8 * KIB


def test_the_budget_holds_in_backward_too() -> None:
    x = torch.ones(KIB, requires_grad=True)
    y = x.sin().cos()
    with pytest.raises(OutOfMemory), MemoryMeter("cpu", 4 * KIB):
        y.backward(torch.ones(KIB))
    with MemoryMeter("cpu") as meter:
        x.detach().clone()
    assert meter.peak_bytes == 4 * KIB


def test_a_baseline_beyond_the_budget_is_refused_at_the_first_operator() -> None:
    there = kib(2)
    with pytest.raises(OutOfMemory, match="budget"), MemoryMeter("cpu", KIB).track(there):
        there.add_(1)


def test_an_error_in_the_block_passes_through_and_the_meter_is_closed() -> None:
    with pytest.raises(RuntimeError, match="shape"), MemoryMeter("cpu", count_numpy=True):
        kib(1).view(3)
    assert not tracemalloc.is_tracing()
    with MemoryMeter("cpu") as meter:
        kib(2)
    assert [event for event, _ in meter.timeline] == ["start", "aten::zeros", "end"]


def test_a_meter_that_saw_nothing_raises_and_never_says_zero() -> None:
    with pytest.raises(RuntimeError, match="nothing was live on cpu"), MemoryMeter("cpu"):
        pass
    with pytest.raises(RuntimeError, match="nothing was live on cpu"), MemoryMeter("cpu"):
        torch.zeros(5, device="meta")


def test_devices_that_cannot_be_metered_are_refused() -> None:
    with pytest.raises(ValueError, match="but got meta"):
        MemoryMeter("meta")
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="no CUDA GPU"):
            MemoryMeter("cuda")
        assert MemoryMeter().device == torch.device("cpu")


def test_a_meter_measures_one_block() -> None:
    with MemoryMeter("cpu").track(ONE_KIB) as meter:
        pass
    with pytest.raises(RuntimeError, match="make a new one"), meter:
        pass


def test_measure_counts_arguments_before_and_the_result_after() -> None:
    x, calls = torch.ones(KIB), []

    def double(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return (x + 0) + x

    found = measure_call(double, x, device="cpu", warm_up=2)
    assert len(calls) == 3
    assert (found.live_before_bytes, found.live_after_bytes) == (4 * KIB, 8 * KIB)
    assert (found.peak_bytes, found.rise_bytes) == (12 * KIB, 8 * KIB)
    assert found.seconds > 0
    assert (found.device, found.numpy_peak_bytes) == ("cpu", None)
    with pytest.raises(OutOfMemory):
        measure_call(double, x, device="cpu", budget_bytes=8 * KIB)
    assert measure_call(lambda: x.add_(1), device="cpu", track=[x]).rise_bytes == 0


def test_a_meter_loads_nothing_in_the_middle_of_a_measurement() -> None:
    code = (
        "import sys, torch; from peakmem.meter import measure_call; x = torch.zeros(9);"
        "before = set(sys.modules); measure_call(torch.sin, x, device='cpu', count_numpy=True);"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_pieces_of_a_parameter_may_be_updated_in_place():
    parameter = torch.zeros(10, requires_grad=True)
    with MemoryMeter("cpu").track(parameter), torch.no_grad():
        for piece in parameter.split(5):
            piece -= 1
            piece *= 2
    assert parameter.tolist() == [-2.0] * 10
