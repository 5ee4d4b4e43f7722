"""The checkpointing calculator beside the planners and the simulator."""

from __future__ import annotations

import pytest

from peakmem.plan.chain import Chain, Stage
from peakmem.plan.networks import vgg16_chain
from peakmem.plan.rotor import optimal
from peakmem.plan.segments import every_k, keep_all
from peakmem.plan.simulator import simulate
from peakmem.show.widgets import checkpointing


@pytest.mark.parametrize(("n", "k"), [(16, 4), (9, 3), (1, 1), (7, 24)])
def test_every_k_as_the_simulator_judges_it(n: int, k: int) -> None:
    calculator = checkpointing()
    calculator.set(stages=n, every=k, plan="every K")
    chain = Chain((Stage(1, 2, 1, 1),) * n)
    run = simulate(chain, every_k(chain, k))
    assert f"{run.peak_bytes} stages&#x27; activations" in calculator._text.value
    again = run.makespan - chain.work_time  # each forward takes 1
    figure = calculator.answer().figure
    assert figure == (again, "forwards")


def test_the_optimal_plan_of_vgg16() -> None:
    calculator = checkpointing()
    calculator.set(chain="VGG-16, 32 images", plan="optimal", budget=60)
    chain = vgg16_chain(32)
    most = simulate(chain, keep_all(chain)).peak_bytes
    run = simulate(chain, optimal(chain, 60 * most // 100, slots=200))
    assert f"{run.peak_bytes / 1e6:,.0f} MB" in calculator._text.value
    assert f"{run.makespan / chain.work_time - 1:.1%}" in calculator._text.value


def test_no_plan_for_a_budget_is_a_sentence() -> None:
    calculator = checkpointing()
    calculator.set(plan="optimal", budget=1)
    assert "the smallest budget that works" in calculator.message
    assert "stages&#x27; activations" in calculator._text.value


def test_a_film_that_gets_shorter_stops_at_its_end() -> None:
    calculator = checkpointing()
    calculator.step = calculator._controls["step"].max
    assert "step 44 of 44" in calculator._text.value
    calculator.plan = "keep all"
    assert calculator.step == 32
    assert "step 32 of 32" in calculator._text.value


def test_recomputed_forwards_are_marked() -> None:
    calculator = checkpointing()
    calculator.step = 23
    assert "forward of stage 11 again" in calculator._text.value
    assert ">R</text>" in calculator._picture.value


def test_the_curve_has_a_mark_for_each_k() -> None:
    calculator = checkpointing()
    calculator.set(stages=5)
    assert calculator._curve.value.count("<title>every K</title>") == 5
