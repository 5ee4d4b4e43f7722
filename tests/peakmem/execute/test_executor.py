"""Plans run for real: gradients as without a plan, peaks as simulated, nothing left behind."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import nn

from peakmem.execute.executor import run
from peakmem.measure.measure_chain import chain_of
from peakmem.measure.meter import MemoryMeter
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.offload import joint, with_offload
from peakmem.plan.plan import Plan, Step
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


@cache
def plans() -> dict[str, Plan]:
    tight, middle = LEAST + (TOP - LEAST) // 10, (LEAST + TOP) // 2
    return {
        "keep all": keep_all(CHAIN),
        "every 1": every_k(CHAIN, 1),
        "every 3": every_k(CHAIN, 3),
        "kept set": kept_set_optimal(CHAIN, middle),
        "optimal, tight": optimal(CHAIN, tight),
        "optimal": optimal(CHAIN, middle),
        "least peak": least_peak(CHAIN),
        "offload": with_offload(CHAIN, middle, LINK),
        "joint": joint(CHAIN, middle, LINK),
        "joint, quick link": joint(CHAIN, middle, 100 * LINK),
    }


def plain_step(module: nn.Sequential, inputs: torch.Tensor) -> None:
    module(inputs).sum().backward()


def state_of(module: nn.Sequential) -> list[torch.Tensor]:
    gradients = [p.grad for p in module.parameters()]
    return [*(g for g in gradients if g is not None), *module.buffers(), torch.get_rng_state()]


@pytest.mark.parametrize("name", plans())
def test_gradients_buffers_and_random_numbers_are_those_of_an_ordinary_step(name: str) -> None:
    ordinary, planned = layers(), layers()
    for module, step in (
        (ordinary, lambda: plain_step(ordinary, INPUTS)),
        (planned, lambda: run(plans()[name], planned, INPUTS, CHAIN)),
    ):
        module.train()
        torch.manual_seed(7)
        step()
        step()  # gradients add up
    for a, b in zip(state_of(ordinary), state_of(planned), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", plans())
def test_the_peak_is_what_was_simulated(name: str) -> None:
    plan, module = plans()[name], layers()
    expected = simulate(CHAIN, plan).peak_bytes
    with MemoryMeter("cpu").track(INPUTS) as meter:
        run(plan, module, INPUTS, CHAIN)
    assert 0.98 * expected <= meter.peak_bytes <= 1.02 * expected
    gradients = sum(p.numel() * p.element_size() for p in module.parameters())
    assert meter.live_bytes == INPUTS.untyped_storage().nbytes() + gradients


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
            run(plans()[name], module, INPUTS, CHAIN)
        gc.collect()
    assert meter.live_bytes == INPUTS.untyped_storage().nbytes()


def test_what_cannot_run_is_refused() -> None:
    module = layers()
    with pytest.raises(ValueError, match="8 stages, but the module has 7"):
        run(keep_all(CHAIN), module[:7], INPUTS)
    with pytest.raises(ValueError, match="chain=") as caught:
        run(plans()["offload"], module, INPUTS)
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
