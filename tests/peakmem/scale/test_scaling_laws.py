"""Scaling laws against the papers' printed results, and against a search for the least loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmem.scale.scaling_laws import (
    APPROACHES,
    PARAMETRIC,
    ParametricLoss,
    TrainingRun,
    compute_optimal,
    training_flops,
)
from peakmem.specs.hardware import accelerator

# Hoffmann et al. 2022, table 3: parameters, operations, tokens in 10^12.
CHINCHILLA = [
    (67e9, 5.76e23, 1.5),
    (175e9, 3.85e24, 3.7),
    (280e9, 9.90e24, 5.9),
    (1e12, 1.27e26, 21.2),
    (1e13, 1.30e28, 216.2),
]
budgets = st.floats(1e18, 1e28)


def test_gpt3_in_petaflop_days() -> None:
    flops = training_flops(174.6e9, 300e9)
    assert flops == pytest.approx(3.14e23, rel=0.01)  # Brown et al. 2020, table D.1
    petaflop_day = 10**15 * 24 * 3600
    assert flops / petaflop_day == pytest.approx(3640, rel=0.01)


@pytest.mark.parametrize(("n", "flops", "tokens"), CHINCHILLA)
def test_chinchilla_table_3(n: float, flops: float, tokens: float) -> None:
    found_n, found_d = compute_optimal(flops, "approach-1")
    assert found_n == pytest.approx(n, rel=0.015)
    assert found_d / 1e12 == pytest.approx(tokens, rel=0.05)  # 1.433 is printed 1.5


@pytest.mark.parametrize(
    ("approach", "billions"),
    [
        ("approach-1", 67),
        ("approach-2", 63),
        ("approach-3-rounded", 32.2),
        ("approach-3-unrounded", 40.3),
        ("approach-3-replication", 72.2),
    ],
)
def test_sizes_at_gophers_budget(approach: str, billions: float) -> None:
    assert compute_optimal(5.76e23, approach)[0] / 1e9 == pytest.approx(billions, abs=0.05)


@given(budgets, st.sampled_from(sorted(PARAMETRIC)))
def test_parametric_optimum_is_the_least_loss(flops: float, constants: str) -> None:
    loss: ParametricLoss = PARAMETRIC[constants]
    best = loss.optimal_parameters(flops)
    least = loss.loss(best, flops / (6 * best))
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
        n = best * factor
        assert loss.loss(n, flops / (6 * n)) > least


@given(budgets, st.sampled_from(APPROACHES))
def test_the_budget_is_spent_and_more_of_it_trains_more(flops: float, approach: str) -> None:
    n, d = compute_optimal(flops, approach)
    assert training_flops(n, d) == pytest.approx(flops)
    more_n, more_d = compute_optimal(2 * flops, approach)
    assert more_n > n
    assert more_d > d


def test_days_that_narayanan_et_al_report() -> None:
    peak = accelerator("a100-80gb").flops_per_s("bf16")
    gpt3 = TrainingRun(training_flops(175e9, 300e9, recompute=True), 1024, peak, 140 / 312)
    assert gpt3.days == pytest.approx(34, abs=0.5)
    trillion = TrainingRun(training_flops(1e12, 450e9, recompute=True), 3072, peak, 163 / 312)
    assert trillion.days == pytest.approx(84, abs=1)
    # The lecture's bill: 5 a minute for each device.
    assert gpt3.cost(5 * 60) == pytest.approx(251e6, rel=0.01)
    assert trillion.cost(5 * 60) == pytest.approx(1.9e9, rel=0.04)


def test_energy_and_co2_of_a_run() -> None:
    run = TrainingRun(flops=3600e12, devices=10, flops_per_s=1e12, utilisation=0.5)  # 2 hours on 10
    assert run.device_hours == pytest.approx(2)
    assert run.energy_kwh(500, overhead=1.2) == pytest.approx(1.2)
    # The lecture's 190 MWh and 85 t of CO2 are 447 g per kWh.
    assert run.co2_kg(500, grams_per_kwh=85e6 / 190e3, overhead=1.2) == pytest.approx(
        0.537, abs=1e-3
    )


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: training_flops(0, 1), "n_parameters"),
        (lambda: training_flops(1, float("nan")), "tokens"),
        (lambda: compute_optimal(-1), "flops"),
        (lambda: compute_optimal(1e20, "approach-4"), "unknown approach"),
        (lambda: TrainingRun(1e20, 0, 1e12, 0.5), "devices"),
        (lambda: TrainingRun(1e20, 1, 1e12, 1.5), "at most 1, but got 1.5"),
        (lambda: TrainingRun(1e20, 1, 1e12, 0.5).cost(-1), "per_device_hour"),
        (lambda: TrainingRun(1e20, 1, 1e12, 0.5).energy_kwh(400, overhead=0.9), "0.9"),
        (lambda: TrainingRun(1e20, 1, 1e12, 0.5).co2_kg(400, float("inf")), "grams_per_kwh"),
    ],
)
def test_bad_input_is_named(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
