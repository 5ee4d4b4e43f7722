"""Lab 7: the bank's answers, torch's own scaler as oracle, and the GPU's judge on plain figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.content.lab07 import LAB, gpu_speed, loss_scaler, master_weights, train
from autograder.content.lab07.gradients import _best_scale, _fraction
from autograder.content.lab07.masters import MUTANTS as MASTER_MUTANTS
from autograder.content.lab07.scalers import MUTANTS, LossScaler, TorchScaler
from autograder.content.lab07.training_bytes import _training_bytes
from autograder.model.judge import judge
from autograder.model.task import Answer, Case, Task, Verdict
from autograder.sandbox.host.in_process import LocalStudent
from peakmem.probes import Namespace, lab07
from tests.answers import mistakes_shown
from tests.autograder.content.bank_in_process import check_bank


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_bank(task: Task) -> None:
    check_bank(LAB, task)


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_every_mistake_stands_in_the_bank(task: Task) -> None:
    assert set(task.mistakes) <= mistakes_shown(task)


# flushed_fraction and best_scale


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@given(exponents=st.lists(st.floats(-140, 20), max_size=20), scale=st.integers(-4, 20))
def test_the_flushed_share_is_what_torchs_own_cast_leaves(
    dtype: str, exponents: list[float], scale: int
) -> None:
    values = torch.tensor([2.0**exponent for exponent in exponents], dtype=torch.float32)
    low = (values.double() * 2.0**scale).float().to(getattr(torch, dtype))
    nonzero = values[values != 0]
    share = (low[values != 0] == 0).double().mean().item() if len(nonzero) else 0.0
    assert _fraction([values.numpy()], dtype, 2.0**scale) == pytest.approx(share)


@given(st.lists(st.floats(2**-38, 2**38, width=32), min_size=1, max_size=9))
def test_the_best_scale_is_finite_and_twice_of_it_is_not(values: list[float]) -> None:
    scale = _best_scale([np.array(values, np.float32)])
    tensor = torch.tensor(values)
    assert (tensor * scale).half().isfinite().all()
    assert scale == 2.0**24 or not (tensor * 2 * scale).half().isfinite().all()


# training_bytes, against the sums that are known


def test_bytes_a_parameter_are_lab_3s() -> None:
    sums = {
        recipe: sum(_training_bytes(1, 0, recipe).values())
        for recipe in ("fp32", "mixed", "mixed_fp32_grads", "bf16", "sgd")
    }
    assert sums == {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}
    assert sum(_training_bytes(175 * 10**9, 0, "mixed").values()) == 2800 * 10**9


# master_weights and train


@pytest.mark.parametrize("seed", range(4))
def test_no_draw_lets_a_mutant_of_masters_pass(seed: int) -> None:
    cases = master_weights.cases(np.random.default_rng(seed))
    for name, mutant in MASTER_MUTANTS.items():
        student = LocalStudent({"MasterWeights": mutant})
        answers = [student.run(master_weights.probe_path, case.inputs) for case in cases]
        assert judge(master_weights, cases, answers).mistake == name


@pytest.mark.parametrize("value", [None, [], 1, {}, {"steps": [], "forms": [], "changed": False}])
def test_garbled_masters_earn_nothing(value: Any) -> None:
    cases = master_weights.cases(np.random.default_rng(0))
    verdict = judge(master_weights, cases, [Answer(value=value) for _ in cases])
    assert verdict.points == 0


@pytest.mark.parametrize("value", [None, [], 1, {}, {"losses": [1.0]}])
def test_garbled_trainings_earn_nothing(value: Any) -> None:
    cases = train.cases(np.random.default_rng(0))
    assert judge(train, cases, [Answer(value=value) for _ in cases]).points == 0


# loss_scaler


def _run(scaler: type, inputs: Mapping[str, Any]) -> list[dict[str, Any]]:
    return lab07.train_scaled(scaler, **inputs)


def _verdict(scaler: type, seed: int = 0) -> Verdict:
    cases = loss_scaler.cases(np.random.default_rng(seed))
    student = LocalStudent({"LossScaler": scaler})
    answers = [student.run(loss_scaler.probe_path, case.inputs) for case in cases]
    return judge(loss_scaler, cases, answers)


gradient = st.one_of(
    st.sampled_from([math.inf, -math.inf, math.nan]),
    st.integers(-40, 40).map(lambda quarters: quarters / 4),
)
settings = st.fixed_dictionaries(
    {
        "initial": st.integers(-4, 20).map(lambda exponent: 2.0**exponent),
        "growth": st.sampled_from([2.0, 4.0]),
        "backoff": st.sampled_from([0.25, 0.5]),
        "interval": st.integers(1, 5),
    }
)


@given(
    settings=settings,
    gradients=st.lists(
        st.tuples(st.lists(gradient, min_size=2, max_size=2), st.just([1.0, -0.5, 2.0])),
        min_size=1,
        max_size=20,
    ),
    max_norm=st.sampled_from([None, 1.0]),
)
def test_the_reference_does_what_torch_does(
    settings: dict[str, Any], gradients: list[Any], max_norm: float | None
) -> None:
    inputs = {"settings": settings, "gradients": gradients, "max_norm": max_norm}
    ours, torchs = (_run(scaler, inputs) for scaler in (LossScaler, TorchScaler))
    np.testing.assert_equal(ours, torchs)  # powers of two scale without rounding


def test_every_mutant_has_its_sentence() -> None:
    # A changed loss is seen by itself, without a scaler that makes the mistake.
    assert MUTANTS.keys() | {"changes_the_loss"} == loss_scaler.mistakes.keys()


def test_every_mutant_stands_in_the_bank() -> None:
    assert set(MUTANTS) <= mistakes_shown(loss_scaler)


def test_no_draw_lets_a_mutant_pass() -> None:
    for seed in range(2):
        cases = loss_scaler.cases(np.random.default_rng(seed))
        right = [_run(TorchScaler, case.inputs) for case in cases]
        for name, mutant in MUTANTS.items():
            runs = [_run(mutant, case.inputs) for case in cases]
            assert not all(map(_equal, right, runs)), f"{name} passes with seed {seed}"


def _equal(first: Any, second: Any) -> bool:
    try:
        np.testing.assert_equal(first, second)
    except AssertionError:
        return False
    return True


def test_a_changed_scale_loses_the_trajectory_alone() -> None:
    verdict = _verdict(MUTANTS["grows_late"])
    assert verdict.earned == {"trajectory": 0, "skipped steps": 2, "unscale before clipping": 1}
    assert "expected the scales" in verdict.message


def test_a_missing_method_is_named() -> None:
    class WithoutUpdate:
        def __init__(self, **settings: float) -> None: ...

        def scale(self, loss: torch.Tensor) -> torch.Tensor:
            return loss * 8

        def step(self, optimizer: torch.optim.Optimizer) -> None: ...

    verdict = _verdict(WithoutUpdate)
    assert verdict.points == 0
    assert "no attribute 'update'" in verdict.message


@pytest.mark.parametrize(
    "value",
    [None, [], [1], "steps", [{}], [{"scale": "8", "parameters": [1.0] * 5, "unscaled": None}]],
)
def test_forged_records_earn_nothing(value: Any) -> None:
    gradients = [[[1.0, 1.0], [1.0, 1.0, 1.0]]]
    case = Case(tuple(loss_scaler.parts), {"settings": {}, "gradients": gradients})
    verdict = judge(loss_scaler, [case], [Answer(value=value)])
    assert verdict.points == 0


# gpu_speed: the judge on figures as an H200 gives them, in seconds

OWN = {"float32": 22e-3, "tf32": 2.9e-3, "float16": 1.6e-3, "bfloat16": 1.5e-3}


def _judged(student: Any, own: Any = OWN) -> Verdict:
    answer = Answer(value={"own": own, "student": student})
    return judge(gpu_speed, gpu_speed.cases(np.random.default_rng(0)), [answer])


def _times(factor: float) -> dict[str, float]:
    return {name: seconds * factor for name, seconds in OWN.items()}


@pytest.mark.parametrize("factor", [0.8, 1, 1.25])
def test_seconds_near_the_gpus_own_are_right(factor: float) -> None:
    assert _judged(_times(factor)).status == "right"


def test_a_gpu_without_tensor_cores_is_judged_by_its_own_figures() -> None:
    flat = dict.fromkeys(OWN, 0.3)
    assert _judged(flat, own=flat).status == "right"
    assert _judged(_times(1), own=flat).status == "wrong"


@pytest.mark.parametrize(
    ("mistake", "student"),
    [
        ("not_synchronized", dict.fromkeys(OWN, 9e-6)),
        ("returns_speedups", {name: OWN["float32"] / OWN[name] for name in OWN}),
        ("milliseconds", _times(1000)),
        ("sum_of_repeats", _times(10)),
        ("tf32_left_on", {**OWN, "float32": 2.8e-3}),
        ("tf32_never_on", {**OWN, "tf32": 22e-3}),
        ("times_the_setup", {name: seconds + 0.02 for name, seconds in OWN.items()}),
    ],
)
def test_each_mistake_of_timing_is_recognised(mistake: str, student: dict[str, float]) -> None:
    verdict = _judged(student)
    assert (verdict.points, verdict.mistake) == (0, mistake)


def test_every_mistake_of_timing_has_its_sentence() -> None:
    named = test_each_mistake_of_timing_is_recognised.pytestmark[0].args[1]
    assert {mistake for mistake, _ in named} == set(gpu_speed.mistakes)


@pytest.mark.parametrize(
    "student",
    [
        None,
        [22e-3, 2.9e-3, 1.6e-3, 1.5e-3],
        {"float32": 22e-3},
        {**OWN, "float64": 1.0},
        {**OWN, "tf32": math.nan},
        {**OWN, "tf32": 0.0},
        {**OWN, "tf32": -2.9e-3},
        {**OWN, "tf32": "2.9 ms"},
        {**OWN, "tf32": True},
    ],
)
def test_an_answer_of_another_kind_is_wrong(student: Any) -> None:
    verdict = _judged(student)
    assert verdict.status == "wrong"
    assert "float32, tf32, float16, bfloat16" in verdict.message


@pytest.mark.parametrize("own", [None, {}, {**OWN, "tf32": 1e-9}, {**OWN, "float32": math.nan}])
def test_own_figures_that_no_gpu_reaches_cannot_be_judged(own: Any) -> None:
    verdict = _judged(OWN, own)
    assert (verdict.status, verdict.points) == ("could_not_judge", 0)


def test_forged_seconds_are_wrong() -> None:
    cases = gpu_speed.cases(np.random.default_rng(0))
    assert judge(gpu_speed, cases, [Answer(value=[1, 2])]).status == "wrong"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_the_gpus_probe_refuses_without_a_gpu() -> None:
    with pytest.raises(RuntimeError, match="torch finds none here; run it on a machine that has"):
        lab07.gpu_speed(Namespace({"speedup": dict}))
