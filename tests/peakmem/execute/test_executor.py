"""Plans run for real: gradients as without a plan, peaks as simulated, nothing left behind."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn

from peakmem.execute import executor
from peakmem.execute.executor import run
from peakmem.execute.saved_tensors import FileLink, Slot
from peakmem.measure.measure_chain import chain_of
from peakmem.measure.meter import MemoryMeter
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.offload import joint, with_offload
from peakmem.plan.plan import Copy, Plan, Step
from peakmem.plan.rotor import least_peak, optimal
from peakmem.plan.segments import every_k, keep_all, kept_set_optimal
from peakmem.plan.simulator import simulate

LINK = 4e4  # bytes in one unit of time: a forward of the widest stage


def layers() -> nn.Sequential:
    """Unequal stages that draw random numbers, reuse storages, and have buffers."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(32, 256),
        nn.Sequential(nn.GELU(), nn.Dropout(0.3)),
        nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 64)),
        nn.Sequential(nn.BatchNorm1d(64), nn.Tanh()),
        nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 64)),
        nn.Sequential(nn.Dropout(0.5), nn.LayerNorm(64)),
        nn.Sequential(nn.Linear(64, 128), nn.Sigmoid()),
        nn.Linear(128, 16),
    )


def measured(module: nn.Sequential, inputs: torch.Tensor) -> Chain:
    """Each stage's figures, read off the meter stage by stage; times are sizes."""
    stages = []
    value = inputs
    for stage in module:
        given = value.detach().requires_grad_(bool(stages))
        with MemoryMeter("cpu").track(given) as passing, torch.no_grad():
            alone = stage(given)
        output_bytes = alone.untyped_storage().nbytes()
        before = given.untyped_storage().nbytes()
        with MemoryMeter("cpu").track(given) as meter:
            output = stage(given)
            saved = meter.live_bytes - before
            keep_peak = meter.peak_bytes
            gradient = torch.ones_like(output)
            begun, live = len(meter.timeline), meter.live_bytes
            torch.autograd.backward(output, gradient)
            back_peak = max(level for _, level in meter.timeline[begun:])
        parameters = sum(p.numel() * p.element_size() for p in stage.parameters())
        of_input = before if stages else 0
        stages.append(
            Stage(
                forward_time=parameters / 1e5 + output_bytes / 1e6,
                backward_time=2 * parameters / 1e5 + output_bytes / 1e6,
                saved_bytes=saved,
                output_bytes=output_bytes,
                gradient_bytes=output_bytes,
                parameter_gradient_bytes=parameters,
                keep_extra_bytes=keep_peak - before - saved,
                forward_extra_bytes=passing.peak_bytes - before - output_bytes,
                backward_extra_bytes=back_peak - live - of_input - parameters,
            )
        )
        value = output.detach()
        stage.zero_grad()
    return Chain(tuple(stages), input_bytes=inputs.untyped_storage().nbytes())


INPUTS = torch.randn(256, 32, generator=torch.Generator().manual_seed(1))
CHAIN = measured(layers(), INPUTS)
TOP = simulate(CHAIN, keep_all(CHAIN)).peak_bytes
LEAST = simulate(CHAIN, least_peak(CHAIN)).peak_bytes


_MIDDLE = (LEAST + TOP) // 2
# Made when first asked for, so that collecting the tests plans nothing.
PLANNERS: dict[str, Callable[[], Plan]] = {
    "keep all": lambda: keep_all(CHAIN),
    "every 1": lambda: every_k(CHAIN, 1),
    "every 3": lambda: every_k(CHAIN, 3),
    "kept set": lambda: kept_set_optimal(CHAIN, _MIDDLE),
    "optimal, tight": lambda: optimal(CHAIN, LEAST + (TOP - LEAST) // 10),
    "optimal": lambda: optimal(CHAIN, _MIDDLE),
    "least peak": lambda: least_peak(CHAIN),
    "offload": lambda: with_offload(CHAIN, _MIDDLE, LINK),
    "joint": lambda: joint(CHAIN, _MIDDLE, LINK),
    "joint, quick link": lambda: joint(CHAIN, _MIDDLE, 100 * LINK),
}


@cache
def planned_by(name: str) -> Plan:
    return PLANNERS[name]()


def plain_step(module: nn.Sequential, inputs: torch.Tensor) -> None:
    module(inputs).sum().backward()


def state_of(module: nn.Sequential) -> list[torch.Tensor]:
    gradients = [p.grad for p in module.parameters()]
    return [*(g for g in gradients if g is not None), *module.buffers(), torch.get_rng_state()]


@pytest.mark.parametrize("name", PLANNERS)
def test_gradients_buffers_and_random_numbers_are_those_of_an_ordinary_step(name: str) -> None:
    ordinary, planned = layers(), layers()
    for module, step in (
        (ordinary, lambda: plain_step(ordinary, INPUTS)),
        (planned, lambda: run(planned_by(name), planned, INPUTS, CHAIN)),
    ):
        module.train()
        torch.manual_seed(7)
        step()
        step()  # gradients add up
    for a, b in zip(state_of(ordinary), state_of(planned), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PLANNERS)
def test_the_peak_is_what_was_simulated(name: str) -> None:
    plan, module = planned_by(name), layers()
    expected = simulate(CHAIN, plan).peak_bytes
    with MemoryMeter("cpu").track(INPUTS) as meter:
        run(plan, module, INPUTS, CHAIN)
    assert 0.98 * expected <= meter.peak_bytes <= 1.02 * expected
    gradients = sum(p.numel() * p.element_size() for p in module.parameters())
    assert meter.live_bytes == INPUTS.untyped_storage().nbytes() + gradients


class RoomLink(FileLink):
    """A link that takes memory as a GPU's does: before the step that a copy runs beside.

    The host's side is numpy arrays, which the meter doesn't count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rooms: dict[Slot, torch.Tensor] = {}
        self.copies = self.made_late = 0

    def make_room(self, slots: list[Slot]) -> None:
        self.rooms |= {s: torch.empty(s.handle.size, dtype=torch.uint8) for s in slots}

    def out_ends(self, slots: list[Slot]) -> float:
        for slot in slots:
            slot.storage, slot.handle = None, slot.flat().numpy().copy()
        return self.mark()

    def in_begins(self, slots: list[Slot], after: float | None) -> float:
        self.copies += 1
        if not all(slot in self.rooms for slot in slots):
            self.make_room(slots)
            self.made_late += 1
        for slot in slots:
            room = self.rooms.pop(slot)
            room.numpy()[:] = slot.handle
            slot.storage, slot.handle = room.untyped_storage(), None
        return self.mark()


@pytest.mark.parametrize("speed", [1, 4, 25])
def test_memory_for_returning_tensors_is_taken_before_the_step_beside(
    speed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    links: list[RoomLink] = []
    monkeypatch.setattr(executor, "FileLink", lambda: links.append(RoomLink()) or links[-1])
    beside = 0
    for part in (0.3, 0.5, 0.7, 0.9):
        plan = with_offload(CHAIN, int(LEAST + part * (TOP - LEAST)), LINK * speed)
        module = layers()
        with MemoryMeter("cpu").track(INPUTS) as meter:
            run(plan, module, INPUTS, CHAIN)
        simulated = simulate(CHAIN, plan)
        assert meter.peak_bytes == pytest.approx(simulated.peak_bytes, rel=0.02)
        steps = [s for s in simulated.spans if s.kind not in ("out", "in")]
        during = sum(
            step.start <= span.start < step.end
            for span in simulated.spans
            if span.kind == "in"
            for step in steps
        )
        assert links[-1].copies - links[-1].made_late == during
        beside += during
    assert beside


def test_memory_that_a_copy_out_frees_during_a_step_is_not_taken_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executor, "FileLink", RoomLink)
    keep = keep_all(CHAIN)
    nbytes = CHAIN.stages[0].saved_bytes  # out and in again during the forward of stage 2
    copies = (Copy("out", 0, 1), Copy("in", 0, 1))
    plan = Plan("out and in", keep.steps, copies, link_bytes_per_s=4 * nbytes)
    chain = replace(CHAIN, stages=tuple(replace(s, forward_time=1.0) for s in CHAIN.stages))
    during = [e[1:4] for e in simulate(chain, plan).timeline if e.stage == 0 or e.stage == 2][2:7]
    assert during == [
        (True, "keep", 2),
        (True, "out", 0),
        (False, "out", 0),
        (True, "in", 0),
        (False, "in", 0),
    ]
    module = layers()
    with MemoryMeter("cpu").track(INPUTS) as meter:
        run(plan, module, INPUTS, chain)
    assert meter.peak_bytes == pytest.approx(simulate(chain, plan).peak_bytes, rel=0.02)


@pytest.mark.parametrize("planner", [optimal, kept_set_optimal])
def test_no_budget_is_exceeded(planner: Callable[[Chain, int], Plan]) -> None:
    for part in (0.05, 0.2, 0.5, 0.8, 1.0):
        budget = int(LEAST + part * (TOP - LEAST))
        try:
            plan = planner(CHAIN, budget)
        except ValueError:
            assert planner is kept_set_optimal
            continue
        module = layers()
        with MemoryMeter("cpu", budget).track(INPUTS) as meter:
            run(plan, module, INPUTS)
        assert meter.peak_bytes <= budget


@pytest.mark.parametrize("link", [LINK, 10 * LINK, 1000 * LINK])
def test_no_budget_is_exceeded_by_swaps(link: float) -> None:
    for part in (0.3, 0.6, 0.9):
        budget = int(LEAST + part * (TOP - LEAST))
        plan = joint(CHAIN, budget, link)
        module = layers()
        with MemoryMeter("cpu", budget).track(INPUTS) as meter:
            run(plan, module, INPUTS, CHAIN)
        assert meter.peak_bytes <= budget


def test_the_input_gets_its_gradient() -> None:
    inputs, twin = (INPUTS.clone().requires_grad_() for _ in range(2))
    module = layers().eval()
    plain_step(module, inputs)
    run(every_k(CHAIN, 2), module, twin)
    assert inputs.grad is not None
    assert twin.grad is not None
    torch.testing.assert_close(inputs.grad, twin.grad)


def test_spans_are_those_of_the_plan() -> None:
    plan = with_offload(CHAIN, (LEAST + TOP) // 2, LINK)
    execution = run(plan, layers(), INPUTS, CHAIN)
    predicted = simulate(CHAIN, plan).spans
    assert [span[:2] for span in execution.spans] == [span[:2] for span in predicted]
    assert any(span.kind == "out" for span in execution.spans)
    assert all(0 <= span.start <= span.end <= execution.seconds for span in execution.spans)


def test_a_loss_at_the_end_needs_no_gradient() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1), nn.Flatten(0))
    inputs = torch.randn(3, 4)
    expected = torch.autograd.grad(module(inputs).square().sum(), list(module.parameters()))
    chain = Chain((Stage(1, 1, 1, 1),) * 4)
    run(every_k(chain, 2), module, inputs, gradient_of=lambda output: 2 * output)
    for parameter, gradient in zip(module.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_integers_go_in() -> None:
    module = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2))
    run(every_k(Chain((Stage(1, 1, 1, 1),) * 2), 1), module, torch.arange(5))
    assert module[0].weight.grad is not None


class Fails(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ArithmeticError("on purpose")


@pytest.mark.parametrize("name", ["optimal, tight", "offload", "joint"])
def test_nothing_is_left_after_an_error(name: str) -> None:
    module = layers()
    module[7] = Fails()
    with MemoryMeter("cpu").track(INPUTS) as meter:
        with pytest.raises(ArithmeticError):
            run(planned_by(name), module, INPUTS, CHAIN)
        gc.collect()
    assert meter.live_bytes == INPUTS.untyped_storage().nbytes()


def test_what_cannot_run_is_refused() -> None:
    module = layers()
    with pytest.raises(ValueError, match="8 stages, but the module has 7"):
        run(keep_all(CHAIN), module[:7], INPUTS)
    with pytest.raises(ValueError, match="chain=") as caught:
        run(planned_by("offload"), module, INPUTS)
    assert "copies" in str(caught.value)
    module[1] = nn.ReLU(inplace=True)
    with pytest.raises(ValueError, match="in place"):
        run(every_k(CHAIN, 2), module, INPUTS)


def test_a_plan_that_is_none_is_refused() -> None:
    plan = Plan("half", (Step("keep", 0), Step("keep", 1)))
    chain = Chain((Stage(1, 1, 1, 1),) * 2)
    with pytest.raises(ValueError, match="before the backward"):
        run(plan, layers()[:2], INPUTS, chain)


def test_a_chain_that_the_library_measured_will_do() -> None:
    chain = chain_of(layers(), INPUTS, repeats=1)
    budget = (LEAST + TOP) // 2
    for plan in (optimal(chain, budget), joint(chain, budget, 1e9)):
        module = layers()
        with MemoryMeter("cpu").track(INPUTS) as meter:
            run(plan, module, INPUTS, chain)
        expected = simulate(chain, plan).peak_bytes
        assert abs(meter.peak_bytes - expected) <= 0.02 * expected


def test_random_plans_run_as_simulated() -> None:
    rng = random.Random(0)
    for _ in range(5):
        budget = rng.randint(LEAST, TOP)
        plan = joint(CHAIN, budget, LINK * rng.choice((1, 5, 25)))
        module = layers()
        with MemoryMeter("cpu").track(INPUTS) as meter:
            run(plan, module, INPUTS, CHAIN)
        expected = simulate(CHAIN, plan).peak_bytes
        assert abs(meter.peak_bytes - expected) <= 0.02 * expected
        assert meter.peak_bytes <= budget
