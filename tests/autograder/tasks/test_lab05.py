"""Lab 5: the bank's answers, and the judge against sizes counted here."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.judge import judge
from autograder.student import LocalStudent
from autograder.task import Answer, Case, Task, Verdict
from autograder.tasks.lab05 import LAB
from autograder.tasks.lab05.largest_micro_batch import largest_micro_batch
from peakmem import OutOfMemory
from tests.autograder.tasks.bank_in_process import check_bank

Search = Callable[[Callable[[int], object], int], Any]


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_bank(task: Task) -> None:
    check_bank(LAB, task)


def _case(upper: int, fits: int, *, broken: bool = False) -> Case:
    parts = ("right",) if broken else ("right", "few runs")
    return Case(parts, {"upper": upper}, secret={"fits": fits, "broken": broken})


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

    verdict = _verdict(search, _case(10, 6, broken=True))
    assert verdict.earned["right"] == 0
    assert "raised ValueError: math domain error" in verdict.message


def test_half_a_sample_is_refused() -> None:
    verdict = _verdict(lambda run, upper: run(2.5), _case(10, 6))  # type: ignore[arg-type]
    assert verdict.status == "wrong"
    assert "raised TypeError: 'float' object" in verdict.message


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
