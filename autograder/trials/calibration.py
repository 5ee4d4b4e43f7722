"""Grades correct answers to exercises with a memory budget, many times.

A correct answer that loses points is a false alarm: the budget is too small, or this machine counts
memory differently than the budgets expect. Each grading is a real one, in the sandbox, of a lab
reduced to its cases with a budget, and each round draws new cases.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from autograder.base.course import Course
from autograder.content import find_lab, lab_names
from autograder.grading.grade import grade
from autograder.grading.registry import TaskLab
from autograder.model.status import shown
from autograder.model.submission import Submission
from autograder.model.task import Case, Lab, Task, Verdict
from autograder.notebooks.intake import take_in
from autograder.notebooks.released import release_of
from autograder.sandbox.host.sandbox import Sandbox
from autograder.trials.answer_bank import given_sources, read_bank, submission_with
from autograder.trials.entry import Entry
from autograder.trials.packing import pack

__all__ = [
    "Grading",
    "Tally",
    "calibrate",
    "grade_rounds",
    "measured_labs",
    "tallies",
    "with_budget",
    "with_cases",
]

_SECRET = bytes(32)  # cases differ from round to round, but not from run to run

Notebook = Mapping[str, Any]


@dataclass(frozen=True)
class Grading:
    """One answer of the bank, graded once."""

    #: The answer.
    entry: Entry
    #: Its verdict.
    verdict: Verdict


@dataclass(frozen=True)
class Tally:
    """Counts of the gradings of one task's correct answers."""

    #: The task.
    task: str
    #: The number of gradings.
    gradings: int
    #: Those that lost points.
    lost: int
    #: Those that weren't judged.
    could_not_judge: int
    #: A line for each grading of these two kinds.
    failures: tuple[str, ...]

    @property
    def problem(self) -> str:
        """The problem, in a sentence; empty if every grading was correct."""
        if not self.failures:
            return ""
        return (
            f"{self.task}: of {self.gradings} gradings of correct answers {self.lost} lost points "
            f"and {self.could_not_judge} were not judged; the first was {self.failures[0]}"
        )

    def __str__(self) -> str:
        return (
            f"{self.task:30} {self.gradings:4} gradings, {self.lost} lost points, "
            f"{self.could_not_judge} not judged"
        )


def with_budget(lab: Lab) -> Lab:
    """Return the lab reduced, as by `with_cases`, to its cases with a budget."""
    return with_cases(lab, lambda case: case.budget is not None)


def with_cases(lab: Lab, keep: Callable[[Case], bool]) -> Lab:
    """Return the lab reduced to the cases that `keep` accepts, and to the tasks with such cases.

    Everyone then earns the parts that no such case decides.
    """

    def reduced(task: Task) -> Task:
        def cases(rng: np.random.Generator) -> list[Case]:
            return [case for case in task.cases(rng) if keep(case)]

        return replace(task, cases=cases)

    tasks = map(reduced, lab.tasks)
    return replace(lab, tasks=tuple(t for t in tasks if t.cases(np.random.default_rng(0))))


def measured_labs() -> list[Lab]:
    """Return the labs in which a task has a budget, each reduced by `with_budget`."""
    return [lab for name in lab_names() if (lab := with_budget(find_lab(name))).tasks]


def calibrate(labs: Iterable[Lab], course: Course, rounds: int) -> Iterator[Grading]:
    """Grade every correct answer of the course's answer bank to the labs' tasks, `rounds` times.

    `labs` are reduced to their cases with a budget. Raises FileNotFoundError, with the remedy, if
    the course has no answer bank.
    """
    bank = course.bank
    if not bank.is_dir():
        raise FileNotFoundError(
            f"{bank} is missing, and without answers there is nothing to measure; run `autograder "
            "--course DIR doctor --measure` with a checkout of the course as DIR"
        )
    for lab in labs:
        tasks = {task.id for task in lab.tasks}
        every = read_bank(bank, find_lab(lab.name))
        right = [entry for entry in every if entry.kind == "right" and entry.task in tasks]
        for each in grade_rounds(lab, right, course, rounds):
            yield from each


def grade_rounds(
    lab: Lab, entries: Sequence[Entry], course: Course, rounds: int
) -> Iterator[list[Grading]]:
    """Grade answers to a lab `rounds` times, and yield the gradings of each round.

    Each round draws new cases, the same in every run.
    """
    release = release_of(lab.name, course.releases)
    with contextlib.ExitStack() as started:
        start = partial(_start, lab, TaskLab(lab.name, course), {}, started)
        for number in range(rounds):
            student = f"round {number}"
            yield list(grade_answers(lab, release, entries, start, student=student))


def _start(
    lab: Lab,
    whole: TaskLab,
    there: dict[tuple[str, ...], Sandbox],
    started: contextlib.ExitStack,
    submission: Submission,
) -> Sandbox:
    """Return a sandbox with the imports that grading such a submission prepares, and no others."""
    heavy = whole.heavy_imports(submission)
    if heavy not in there:
        preload = (*heavy, *whole.imports)
        there[heavy] = started.enter_context(Sandbox(lab.hides, ranks=lab.ranks, preload=preload))
    return there[heavy]


def grade_answers(
    lab: Lab,
    release: Notebook,
    entries: Sequence[Entry],
    start: Callable[[Submission], Sandbox],
    *,
    student: str,
) -> Iterator[Grading]:
    """Grade answers to a lab, several in one notebook, on the cases drawn for `student`.

    `start` returns the sandbox for a submission.
    """
    for together in pack(entries, given=given_sources(release)):
        by_task = {entry.task: entry for entry in together}
        answers = {task: entry.source for task, entry in by_task.items()}
        raw = json.dumps(submission_with(release, answers)).encode()
        submission = take_in(student, lab.name, raw, release)
        tasks = tuple(task for task in lab.tasks if task.id in by_task)
        graded = grade(replace(lab, tasks=tasks), submission, start(submission), _SECRET)
        for verdict in graded.result.verdicts:
            yield Grading(by_task[verdict.task], verdict)


def tallies(gradings: Iterable[Grading]) -> list[Tally]:
    """Count the gradings of correct answers by task, in the tasks' order of first appearance."""
    by_task: dict[str, list[Grading]] = {}
    for grading in gradings:
        by_task.setdefault(grading.verdict.task, []).append(grading)
    return [_tally(task, of_task) for task, of_task in by_task.items()]


def _tally(task: str, gradings: Sequence[Grading]) -> Tally:
    failed = [grading for grading in gradings if grading.verdict.status != "right"]
    doubtful = sum(grading.verdict.status == "could_not_judge" for grading in failed)
    return Tally(
        task=task,
        gradings=len(gradings),
        lost=len(failed) - doubtful,
        could_not_judge=doubtful,
        failures=tuple(
            f"{one.entry.label}: {shown(one.verdict.status)}, {one.verdict.message}"
            for one in failed
        ),
    )
