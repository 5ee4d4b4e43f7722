"""Lab 8: the bank's answers, and the references against independent oracles."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import cloudpickle
import numpy as np
import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.parallel import DistributedDataParallel

from autograder.content.lab08 import LAB, data_parallel, ring_all_reduce, sharded_adam
from autograder.content.lab08.adam import Adam
from autograder.content.lab08.states import _states
from autograder.model.judge import judge_answer
from autograder.model.task import Answer, Case, Task
from peakmem.measure import ranks
from peakmem.probes import lab08
from peakmem.probes.lab08.adam import updated
from peakmem.scale.parallelism import zero_states
from tests.answers import mistakes_shown
from tests.autograder.content.bank_in_process import check_bank

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of torch.jit, which it uses
    from torch.distributed.optim import ZeroRedundancyOptimizer


@pytest.fixture(scope="module", autouse=True)
def by_value() -> Iterator[None]:
    """Functions of this file go to ranks by their code, as a notebook's do."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endless waits are detected sooner."""
    monkeypatch.setattr(ranks, "_STILL", 1.0)


# Each answer starts processes. The sandbox tries all correct ones each time (test_course_bank.py).
EACH_TIME = {"lab08-model_state_bytes"}


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(task, id=task.id, marks=[pytest.mark.slow] * (task.id not in EACH_TIME))
        for task in LAB.tasks
    ],
)
def test_bank(task: Task) -> None:
    check_bank(LAB, task)


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_every_mistake_stands_in_the_bank(task: Task) -> None:
    assert set(task.mistakes) <= mistakes_shown(task)


# bytes of model states, against the paper and the library


@given(st.integers(1, 10**12), st.integers(1, 5000), st.integers(0, 3))
def test_states_are_the_librarys(n_params: int, world: int, stage: int) -> None:
    right = zero_states(n_params, world, stage)
    expected = [right.parameters, right.gradients, right.optimizer]
    assert list(_states(n_params, world, stage, "mixed").values()) == expected


def test_states_are_the_papers() -> None:
    found = [sum(_states(7_500_000_000, 64, stage, "mixed").values()) / 1e9 for stage in range(4)]
    assert [round(gb, 1) for gb in found] == [120.0, 31.4, 16.6, 1.9]


# torch's own, judged as a student's


def cases(task: Task, seed: int = 0) -> list[Case]:
    return task.cases(np.random.default_rng(seed))


def failed(task: Task, case: Case, value: Any) -> dict[str, str]:
    found = judge_answer(task, case, Answer(value))
    return {part: finding.said for part, finding in found.items() if not finding.ok}


def by_torch(x: torch.Tensor) -> None:
    dist.all_reduce(x)


def test_the_sums_are_torchs() -> None:
    for case in cases(ring_all_reduce)[:-1]:
        inputs = {name: case.inputs[name] for name in ("world", "lengths", "seed")}
        found = lab08.run_all_reduce(by_torch, **inputs, measure=False)
        assert failed(ring_all_reduce, case, found) == {}
        found["ranks"][1][0][-1] += 1
        assert failed(ring_all_reduce, case, found).keys() == {"sums"}


def wrapped(module: torch.nn.Module) -> Any:
    return DistributedDataParallel(module, find_unused_parameters=True)


def test_torchs_replicas_are_right() -> None:
    for case in cases(data_parallel):
        sizes = {name: value for name, value in case.inputs.items() if name != "metered"}
        assert failed(data_parallel, case, lab08.run_replicas(wrapped, **sizes)) == {}


def test_the_reference_is_torchs_adam() -> None:
    for case in cases(sharded_adam)[:-1]:
        inputs = case.inputs
        given = (inputs["shapes"], inputs["missing"], inputs["options"], inputs["seed"])
        (_, right), (_, ours) = updated(torch.optim.Adam, *given), updated(Adam, *given)
        for a, b in zip(right, ours, strict=True):
            torch.testing.assert_close(a, b)


def test_a_sum_that_nearly_cancels_is_right_despite_rounding() -> None:
    *_, large = cases(sharded_adam)
    inputs = {**large.inputs, "missing": [[], [], []], "seed": 1502717436}
    case = Case(large.parts, inputs, budget=large.budget)
    given = (inputs["shapes"], inputs["missing"], inputs["options"], inputs["seed"])
    _, params = updated(torch.optim.Adam, *given)
    sums = [p.sum().item() for p in params]
    assert abs(sums[2]) < 0.1  # of two million values
    for change, wrong in ((0.0, set()), (1.0, {"state"})):
        told = {"params": [*sums[:2], sums[2] + change, sums[3]]}
        found = {"ranks": [told] * 4, "held_bytes": [0] * 4}
        assert failed(sharded_adam, case, found).keys() == wrong


def dealt_out(params: list[torch.nn.Parameter], **options: Any) -> Any:
    return ZeroRedundancyOptimizer(params, torch.optim.Adam, **options)


def test_torchs_zero_is_right_but_deals_out_whole_tensors() -> None:
    first, *_, large = cases(sharded_adam)
    for case, wrong in ((first, set()), (large, {"state"})):
        inputs = {
            **{name: value for name, value in case.inputs.items() if name != "metered"},
            # It has all ranks gather whenever one does: each tensor has a gradient.
            "missing": [[] for _ in case.inputs["missing"]],
        }
        changed = Case(case.parts, inputs, budget=case.budget)
        found = lab08.run_adam(dealt_out, **inputs)
        assert failed(sharded_adam, changed, found).keys() == wrong
