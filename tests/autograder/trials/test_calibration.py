"""Calibration: no right answer is refused memory, and a budget that refuses one is reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autograder.base.course import Course
from autograder.cli import app
from autograder.cli.report import OK, PROBLEM, USAGE
from autograder.content import find_lab, lab_names
from autograder.model.judge import could_not_judge
from autograder.model.task import Budget, Case, Lab, Task, Verdict
from autograder.sandbox.host import budget as budgets
from autograder.trials import calibration
from autograder.trials.answer_bank import read_bank
from autograder.trials.calibration import Grading, grade_rounds, measured_labs, tallies, with_budget
from autograder.trials.entry import Entry
from tests.autograder.small_lab import SMALL_LAB, task

MIB = 2**20
LAB03, LEAN = "lab03_adam", "lab03-lean_adam_step"


def measured(
    capsys: pytest.CaptureFixture[str], status: int, *arguments: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """The counts of `doctor --measure 1` by task, and its problems."""
    assert app.main([*arguments, "doctor", "--measure", "1", "--json"]) == status
    said = json.loads(capsys.readouterr().out)
    return said.get("measured", []), said["problems"]


@pytest.mark.sandbox
@pytest.mark.parametrize("tasks", [{LEAN}, pytest.param(None, marks=pytest.mark.slow)], ids=str)
def test_no_right_answer_is_refused_its_memory(
    tasks: set[str] | None,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = [
        replace(lab, tasks=kept)
        for lab in measured_labs()
        if (kept := tuple(task for task in lab.tasks if tasks is None or task.id in tasks))
    ]
    monkeypatch.setattr(calibration, "measured_labs", lambda: chosen)
    counted, _ = measured(capsys, OK)
    expected = {
        task.id: sum(
            entry.kind == "right" and entry.task == task.id
            for entry in read_bank(repository / "bank", find_lab(lab.name))
        )
        for lab in chosen
        for task in lab.tasks
    }
    assert {one["task"]: one["gradings"] for one in counted} == expected
    assert LEAN in expected
    assert tasks or "lab06-offloaded_adam" in expected


def with_budgets(lab: Lab, changed: Callable[[Budget], Budget]) -> Lab:
    def change(task: Task) -> Task:
        def cases(rng: np.random.Generator) -> list[Case]:
            return [replace(c, budget=changed(c.budget)) for c in task.cases(rng) if c.budget]

        return replace(task, cases=cases)

    return replace(lab, tasks=tuple(map(change, lab.tasks)))


@pytest.mark.sandbox
@pytest.mark.parametrize("name", lab_names())
def test_a_right_answer_to_each_measured_exercise_is_granted_its_memory(
    name: str, repository: Path
) -> None:
    lab, firsts = with_budget(find_lab(name)), dict[str, Entry]()
    for entry in read_bank(repository / "bank", find_lab(name)):
        if entry.kind == "right":
            firsts.setdefault(entry.task, entry)
    answers = [firsts[task.id] for task in lab.tasks]
    (gradings,) = grade_rounds(lab, answers, Course(repository), 1)
    counted = tallies(gradings)
    assert len(counted) == len(lab.tasks)
    assert not [tally.problem for tally in counted if tally.problem]


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_budget_that_is_too_small_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = with_budgets(
        with_budget(find_lab(LAB03)), lambda budget: replace(budget, bytes=budget.bytes - 8 * MIB)
    )
    monkeypatch.setattr(calibration, "measured_labs", lambda: [small])
    counted, problems = measured(capsys, PROBLEM)
    assert [one["lost"] == one["gradings"] > 0 for one in counted] == [True] * len(small.tasks)
    assert len(problems) == len(small.tasks)
    said = "lean_adam_step: of 6 gradings of correct answers 6 lost points"
    assert [said in problem for problem in problems].count(True) == 1


@pytest.mark.sandbox
def test_a_machine_that_enforces_no_budget_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(budgets, "_set", lambda pid, limits: None)
    lab = with_budget(find_lab(LAB03))
    lab = replace(lab, tasks=[one for one in lab.tasks if one.name != "lean_adam_step"])
    monkeypatch.setattr(calibration, "measured_labs", lambda: [lab])
    counted, problems = measured(capsys, PROBLEM)
    assert all(one["could_not_judge"] == one["gradings"] > 0 for one in counted)
    assert "doesn't hold a process to a memory budget" in problems[0]


@pytest.mark.sandbox
def test_a_course_without_a_bank_is_told_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, problems = measured(capsys, USAGE, "--course", str(tmp_path))
    assert "run `autograder --course DIR doctor --measure` with a checkout" in problems[0]


# Without the sandbox


def test_a_lab_is_cut_down_to_its_cases_with_a_budget() -> None:
    whole, cut = find_lab(LAB03), with_budget(find_lab(LAB03))
    assert [task.name for task in cut.tasks] == [
        "find_the_leak",
        "lean_adam_step",
        "step_in_backward",
    ]
    for after in cut.tasks:
        (before,) = (one for one in whole.tasks if one.id == after.id)
        drawn = before.cases(np.random.default_rng(3))
        (case,) = after.cases(np.random.default_rng(3))
        assert case.budget
        assert [one.budget for one in drawn if one.budget] == [case.budget]
    assert with_budget(SMALL_LAB).tasks == ()


def test_lost_points_and_doubts_are_counted_apart() -> None:
    one = task("one", 8)
    entry = Entry(one.id, "right", "a", None, "", 1, "")
    lost = Verdict(one.id, "partly", {}, 2, "It took too much.")
    verdicts = [Verdict(one.id, "right", {}, 2, ""), lost, could_not_judge(one, "Who knows?")]
    (tally,) = tallies(Grading(entry, verdict) for verdict in verdicts)
    assert (tally.gradings, tally.lost, tally.could_not_judge) == (3, 1, 1)
    assert tally.failures[0] == f"{one.id}/right_a: partially correct, It took too much."
    assert "1 lost points and 1 were not judged" in tally.problem
    (good,) = tallies([Grading(entry, verdicts[0])])
    assert good.problem == ""
