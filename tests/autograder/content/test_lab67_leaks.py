"""Labs 6 and 7, find the leak: the given code is right, leaks, and is graded accordingly."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import numpy as np
import pytest

from autograder.content.lab06.find_the_leak import find_the_leak as lab06_leak
from autograder.content.lab07.find_the_leak import find_the_leak as lab07_leak
from autograder.content.lab07.find_the_leak import train_low
from autograder.model.judge import judge
from autograder.model.task import Answer, Task, Verdict
from autograder.notebooks.questions import COURSE
from autograder.notebooks.released import release_of
from peakmem.probes import Namespace, lab06, lab07

GIVEN = {
    "lab06": (lab06_leak, lab06, "lab06_swap", "wasteful_mean_squares", "buffer_for_each_shape"),
    "lab07": (
        *(lab07_leak, lab07, "lab07_mixed_precision", "wasteful_train_low"),
        "copies_of_each_step",
    ),
}


def _given(lab: str, name: str) -> Any:
    """The function of a released notebook's given cell."""
    import torch

    for cell in release_of(lab, COURSE.releases)["cells"]:
        source = "".join(cell["source"])
        if f"def {name}(" in source:
            end = source.index("\n\n\n")
            names: dict[str, Any] = {"torch": torch}
            exec(source[:end], names)
            return names[name]
    raise AssertionError(f"{lab} gives no {name}")


def _verdict(task: Task, probes: Any, function: Any, seed: int = 1) -> Verdict:
    student = Namespace({task.defines[0]: function})
    cases = task.cases(np.random.default_rng(seed))
    answers = []
    for case in cases:
        answers.append(Answer(probes.find_the_leak(student, **case.inputs)))
        gc.collect()
    return judge(task, cases, answers)


@pytest.mark.parametrize("number", GIVEN)
def test_the_given_code_is_right_and_leaks(number: str) -> None:
    task, probes, lab, name, mistake = GIVEN[number]
    verdict = _verdict(task, probes, _given(lab, name))
    assert (verdict.points, verdict.mistake) == (1, mistake), verdict.message


# Two of them tell most of what eight do.
SEEDS = pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 2)) for seed in range(8)]
)


def _last_bits_away(masters: list[Any], batches: list[Any], lr: float) -> list[float]:
    """Train right, on masters that differ by what another order of a float32 update may change."""
    for master in masters:
        master.mul_(1 + 2**-21)
    return train_low(masters, batches, lr)


@SEEDS
def test_the_last_bits_of_a_master_cost_no_points(seed: int) -> None:
    verdict = _verdict(lab07_leak, lab07, _last_bits_away, seed)
    assert verdict.status == "right", verdict.message


@SEEDS
def test_what_a_large_run_takes_for_rounding_the_small_ones_show(seed: int) -> None:
    verdict = _verdict(lab07_leak, lab07, partial(train_low, low_product=True), seed)
    assert (verdict.points, verdict.mistake) == (0, "product_in_low")
