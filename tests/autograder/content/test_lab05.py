"""Lab 5: the bank's answers, and the judge against sizes counted here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.content.lab05 import LAB
from autograder.content.lab05.accumulate_gradients import (
    accumulate_gradients,
    largest_rise_bytes,
    least_rise_bytes,
)
from autograder.content.lab05.accumulate_token_mean import accumulate_token_mean
from autograder.content.lab05.batch_norm_gap import _gaps, batch_norm_gap
from autograder.content.lab05.epoch import MUTANTS, simulate
from autograder.content.lab05.gradients import close, weighted
from autograder.content.lab05.largest_micro_batch import largest_micro_batch
from autograder.content.lab05.memory_line import line_of, memory_line
from autograder.content.lab05.pieces import Pieces
from autograder.content.lab05.train_epoch import train_epoch
from autograder.model.judge import judge
from autograder.model.task import Answer, Case, Memory, Task, Verdict
from autograder.sandbox.host.in_process import LocalStudent
from autograder.sandbox.host.sandbox import Sandbox
from peakmem import OutOfMemory
from tests.answers import mistakes_shown, source_of
from tests.autograder.content.bank_in_process import check_bank

Search = Callable[[Callable[[int], object], int], Any]


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_bank(task: Task) -> None:
    check_bank(LAB, task)


def _case(upper: int, fits: int, *, broken: str = "", good_runs: int = 0) -> Case:
    parts = ("right",) if broken else ("right", "few runs")
    secret = {"fits": fits, "broken": broken, "good_runs": good_runs}
    return Case(parts, {"upper": upper}, secret=secret)


def _verdict(search: Search, case: Case) -> Verdict:
    assert largest_micro_batch.ask is not None
    student = LocalStudent({"largest_micro_batch": search})
    answer = student.run(largest_micro_batch.probe_path, case.inputs, largest_micro_batch.ask(case))
    return judge(largest_micro_batch, [case], [answer])


def _runs_often(times: int) -> Search:
    """A search that makes exactly so many runs, and knows the answer 7 without them."""

    def search(run: Callable[[int], object], upper: int) -> int:
        for _ in range(times):
            run(1)
        return 7

    return search


@given(upper=st.integers(7, 4000))
def test_runs_are_counted_to_the_last_one(upper: int) -> None:
    allowed = math.ceil(math.log2(upper)) + 2
    assert _verdict(_runs_often(allowed), _case(upper, 7)).status == "right"
    over = _verdict(_runs_often(allowed + 1), _case(upper, 7))
    assert over.earned == {"right": 3, "few runs": 0}


@given(data=st.data(), upper=st.integers(1, 4000))
def test_only_the_largest_size_that_fits_is_right(data: st.DataObject, upper: int) -> None:
    fits = data.draw(st.integers(0, upper))
    found = data.draw(st.integers(-1, upper + 1))
    verdict = _verdict(lambda run, upper: found, _case(upper, fits))
    assert (verdict.status == "right") == (found == fits)
    assert verdict.status == "right" or verdict.points == 0


def test_an_error_of_the_students_own_is_not_the_models() -> None:
    def search(run: Callable[[int], object], upper: int) -> int:
        raise ValueError("math domain error")

    verdict = _verdict(search, _case(10, 6, broken="broken"))
    assert verdict.earned["right"] == 0
    assert "ValueError: math domain error" in verdict.message


@pytest.mark.parametrize(("fits", "points"), [(7, 3), (8, 0)])
def test_a_search_that_ends_before_the_error_is_judged_by_its_result(
    fits: int, points: int
) -> None:
    case = _case(100, fits, broken="broken", good_runs=3)
    assert _verdict(_runs_often(3), case).earned["right"] == points


def test_half_a_sample_is_refused() -> None:
    verdict = _verdict(lambda run, upper: run(2.5), _case(10, 6))  # type: ignore[arg-type]
    assert verdict.status == "wrong"
    assert "TypeError: 'float' object" in verdict.message


def test_a_full_memory_may_be_caught_as_memory_error() -> None:
    def search(run: Callable[[int], object], upper: int) -> int:
        with pytest.raises(MemoryError) as caught:
            run(upper)
        return 0 if caught.type is OutOfMemory else -1

    assert _verdict(search, _case(4, 0)).status == "right"


@pytest.mark.parametrize("value", [None, 7, "raised", [], ["value"], {"value": 7}, [[7], [7]]])
def test_forged_answers_earn_nothing(value: Any) -> None:
    cases = largest_micro_batch.cases(np.random.default_rng(0))
    verdict = judge(largest_micro_batch, cases, [Answer(value=value)] * len(cases))
    assert verdict.points == 0


# Every recognised mistake is in the bank.


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_every_mistake_stands_in_the_bank(task: Task) -> None:
    assert set(task.mistakes) <= mistakes_shown(task)


# Gradients. The oracle is one backward over the whole batch.


def _names(task: Task, file: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(source_of(task, file), names)
    return names


def _answer(task: Task, case: Case, names: dict[str, Any]) -> Answer:
    return LocalStudent(names).run(task.probe_path, case.inputs)


@pytest.mark.parametrize("seed", range(3))
def test_the_weights_of_micro_batches_make_the_full_batchs_gradient(seed: int) -> None:
    for case in accumulate_gradients.cases(np.random.default_rng(seed)):
        if "small" not in case.inputs:
            continue
        pieces = Pieces(case.inputs["small"], case.inputs["micro_batch"])
        shares = [size / sum(pieces.sizes) for size in pieces.sizes]
        by_hand = weighted(pieces.gradients, shares, pieces.before)
        assert close(by_hand, pieces.right.gradients)
        assert math.isclose(float(np.dot(shares, pieces.losses)), pieces.right.loss)


def test_gradients_a_hundred_thousandth_off_are_wrong_and_rounding_is_not() -> None:
    right = [np.array([3.0, -1.0]), np.array([[1e-8]])]
    assert close([array * (1 + 1e-9) for array in right], right)
    assert not close([right[0], right[1] * (1 + 1e-5)], right)
    assert not close([right[0] * np.nan, right[1]], right)


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, {"sizes": [1]}, {"gradients": [None]}])
@pytest.mark.parametrize(
    "task", [t for t in LAB.tasks if t is not largest_micro_batch], ids=lambda task: task.id
)
def test_garbled_answers_earn_nothing(task: Task, value: Any) -> None:
    cases = task.cases(np.random.default_rng(0))
    assert judge(task, cases, [Answer(value=value)] * len(cases)).points == 0


@pytest.fixture(scope="module")
def metered() -> tuple[Case, dict[str, Any]]:
    """The metered case, and the answer of right work."""
    case = accumulate_gradients.cases(np.random.default_rng(0))[-1]
    value = _answer(accumulate_gradients, case, _names(accumulate_gradients, "right_split")).value
    assert isinstance(value, dict)
    return case, value


def test_the_peak_is_kept_to_the_byte(metered: tuple[Case, dict[str, Any]]) -> None:
    case, value = metered
    assert value["rise_bytes"] < 0.6 * largest_rise_bytes(), "right work has room"
    for extra, earned in ((0, 2.0), (1, 0.0)):
        rise_bytes = largest_rise_bytes() + extra
        verdict = judge(accumulate_gradients, [case], [Answer({**value, "rise_bytes": rise_bytes})])
        assert verdict.earned["gradients"] == earned
        assert str(rise_bytes) not in verdict.message


def test_graphs_that_are_too_large_lie_well_above_what_the_kernel_allows(
    metered: tuple[Case, dict[str, Any]],
) -> None:
    case, _ = metered
    names = _names(accumulate_gradients, "wrong_larger_graphs")
    value = _answer(accumulate_gradients, case, names).value
    assert isinstance(value, dict)
    assert case.budget is not None
    large = case.inputs["large"]
    given_bytes = 2 * 4 * large["samples"] * large["length"] * large["width"]
    assert given_bytes + value["rise_bytes"] > case.budget.bytes + 2**19


def test_the_kernels_word_counts_and_the_meters_only_without_it(
    metered: tuple[Case, dict[str, Any]],
) -> None:
    case, value = metered
    above = {**value, "rise_bytes": 2 * largest_rise_bytes()}
    right = {
        (memory, given is above)
        for memory in get_args(Memory)
        for given in (value, above)
        if judge(accumulate_gradients, [case], [Answer(given, memory=memory)]).earned["gradients"]
    }
    assert right == {("", False), ("within", False), ("within", True)}


@pytest.mark.parametrize(
    "changes",
    [
        {"rise_bytes": 0},
        {"rise_bytes": least_rise_bytes() - 1},
        {"sizes": []},
        {"sizes": [2] * 5},
    ],
    ids=str,
)
def test_less_than_the_work_takes_is_doubted(
    metered: tuple[Case, dict[str, Any]], changes: dict[str, Any]
) -> None:
    case, value = metered
    verdict = judge(accumulate_gradients, [case], [Answer({**value, **changes})])
    assert (verdict.status, verdict.earned["gradients"]) == ("could_not_judge", 0)


def test_the_loss_of_the_metered_call_counts(metered: tuple[Case, dict[str, Any]]) -> None:
    case, value = metered
    part = "existing gradients and loss"
    for wrong in (math.nan, 0.0, 1.001 * value["value"], True, None):
        verdict = judge(accumulate_gradients, [case], [Answer({**value, "value": wrong})])
        assert (verdict.earned[part], verdict.earned["gradients"]) == (0, 2)


_LAYERS_ITSELF = """
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    outputs = inputs
    for layer in model:
        outputs = layer(outputs)
    loss = loss_fn(outputs, targets)
    loss.backward()
    return loss.item()
"""


def test_a_whole_batch_through_the_layers_is_not_taken_for_micro_batches() -> None:
    names: dict[str, Any] = {}
    exec(_LAYERS_ITSELF, names)
    cases = [c for c in accumulate_gradients.cases(np.random.default_rng(0)) if "small" in c.inputs]
    answers = [_answer(accumulate_gradients, case, names) for case in cases]
    assert judge(accumulate_gradients, cases, answers).status == "could_not_judge"


_HIDES_ITS_GRAPHS = """
import torch
from torch.utils._python_dispatch import _disable_current_modes

def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    with _disable_current_modes():  # in here the meter is deaf
        total = 0.0
        for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
            total = total + loss_fn(model(x), y) * len(x) / len(inputs)
        total.backward()
    return total.item()
"""


@pytest.mark.sandbox
def test_graphs_hidden_from_the_meter_are_refused_by_the_kernel() -> None:
    honest = source_of(accumulate_gradients, "right_indices")
    case = accumulate_gradients.cases(np.random.default_rng(0))[-1]
    found = {}
    with Sandbox() as sandbox:
        for source in (honest, _HIDES_ITS_GRAPHS):
            with sandbox.open() as student:
                student.run_cell(source)
                answer = student.run(
                    accumulate_gradients.probe_path, case.inputs, budget=case.budget
                )
            earned = judge(accumulate_gradients, [case], [answer]).earned["gradients"]
            found[source] = (answer.memory, earned)
    assert found[honest] == ("within", 2)
    # On a busy machine it may end otherwise, but the meter alone would give it the points.
    assert found[_HIDES_ITS_GRAPHS][1] == 0, found[_HIDES_ITS_GRAPHS]


# The line. The oracle is numpy's.


@given(
    points=st.lists(
        st.tuples(st.integers(1, 1000), st.integers(1, 10**9)), min_size=2, unique_by=lambda p: p[0]
    )
)
def test_the_line_is_numpys(points: list[tuple[int, int]]) -> None:
    sizes, peaks = zip(*points, strict=True)
    slope, fixed = np.polyfit(sizes, peaks, 1)
    np.testing.assert_allclose(line_of(sizes, peaks), (fixed, slope), rtol=1e-6, atol=10)


# The epoch. The oracle is a real training with torch's SGD and its own clipping.


@pytest.mark.parametrize("seed", range(3))
def test_the_simulated_epoch_is_a_real_training(seed: int) -> None:
    for case in train_epoch.cases(np.random.default_rng(seed)):
        value = _answer(train_epoch, case, _names(train_epoch, "right_islice")).value
        right = simulate(case.inputs)
        assert value["events"] == right["events"]
        for real, simulated in zip(value["gradients"], right["gradients"], strict=True):
            assert close(real, simulated, 1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_every_mutant_of_the_epoch_is_told_from_right_work_in_every_draw(seed: int) -> None:
    cases = train_epoch.cases(np.random.default_rng(seed))
    for mutant in MUTANTS:
        answers = [Answer(simulate(case.inputs, mutant)) for case in cases]
        verdict = judge(train_epoch, cases, answers)
        assert verdict.mistake == mutant, verdict.message


def _epoch(**changes: Any) -> Verdict:
    """The verdict on right epochs, with such changes to what came back."""
    cases = train_epoch.cases(np.random.default_rng(0))
    answers = [Answer({**simulate(case.inputs), **changes}) for case in cases]
    return judge(train_epoch, cases, answers)


def test_an_epoch_without_gradients_or_forwards_is_not_right() -> None:
    assert _epoch().status == "right"
    assert _epoch(gradients=[]).earned["updates and gradients"] == 0
    assert _epoch(forwards=0).status == "could_not_judge"


_EMPTIES_LISTS = """
def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    for thing in (model, optimizer, scheduler):
        for value in list(vars(thing).values()) if thing is not None else []:
            if isinstance(value, list) and value is not optimizer.param_groups:
                value.clear()
    updates = 0
    for number, batch in enumerate(loader, 1):
        model(*batch).backward()
        if number % accumulation_steps == 0:
            optimizer.step()
            updates += 1
    for thing in (model, optimizer, scheduler):
        for value in list(vars(thing).values()) if thing is not None else []:
            if isinstance(value, list) and value is not optimizer.param_groups:
                value.clear()
    optimizer.zero_grad()
    return updates
"""


def test_what_was_noted_is_in_no_attribute_that_a_student_gets() -> None:
    names: dict[str, Any] = {}
    exec(_EMPTIES_LISTS, names)
    cases = train_epoch.cases(np.random.default_rng(0))
    verdict = judge(train_epoch, cases, [_answer(train_epoch, case, names) for case in cases])
    assert verdict.points == 0, verdict.message


@pytest.mark.parametrize(
    ("task", "parameters"),
    [(train_epoch, ("max_norm", "lr_factor")), (accumulate_token_mean, ("ignore_index",))],
    ids=lambda value: getattr(value, "id", ""),
)
def test_every_default_is_relied_on_by_a_case(task: Task, parameters: tuple[str, ...]) -> None:
    for parameter in parameters:
        cases = task.cases(np.random.default_rng(0))
        assert any(case.inputs[parameter] is None for case in cases)


# Batch norm. The oracle is the formula.


def test_the_gap_of_batch_norm_by_hand() -> None:
    x = np.array([[0.0], [0.0], [1.0], [1.0]])
    inputs = {"weights": [np.eye(1), np.eye(1)], "norm": "batch", "x": x, "micro_batch": 2}
    outputs = np.tanh((x - 0.5) / np.sqrt(0.25 + 1e-5))
    assert math.isclose(_gaps(inputs)["right"], np.abs(outputs).max(), rel_tol=1e-12)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 20)) for seed in range(50)]
)
def test_the_largest_difference_is_of_either_sign_in_every_draw(seed: int) -> None:
    cases = batch_norm_gap.cases(np.random.default_rng(seed))
    for mistake in ("signed", "signed_other_way"):
        answers = [Answer({"value": _gaps(c.inputs)[mistake], "changed": []}) for c in cases]
        assert judge(batch_norm_gap, cases, answers).points == 0


def _in_float32(sizes: Sequence[float], peaks: Sequence[float]) -> tuple[float, float]:
    x, y = (np.asarray(numbers, np.float32) for numbers in (sizes, peaks))
    dx = x - x.mean()
    slope = (dx * (y - y.mean())).sum() / (dx * dx).sum()
    return float(y.mean() - slope * x.mean()), float(slope)


@pytest.mark.parametrize("seed", [12, 165, 171, 179, 252, *range(20)])
def test_a_line_in_float32_is_wrong_in_every_draw_and_named(seed: int) -> None:
    cases = memory_line.cases(np.random.default_rng(seed))
    found = [Answer([("value", _in_float32(*c)) for c in case.inputs["calls"]]) for case in cases]
    verdict = judge(memory_line, cases, found)
    assert (verdict.points, verdict.mistake) == (0, "float32")
