"""Grades one submission: runs its cells and probes, judges the answers, returns one Result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autograder.base.limits import Allowance
from autograder.content.provenance import asked_of
from autograder.grading.again import SecondRuns
from autograder.grading.judging import Judged, explained_answers, judge_run
from autograder.grading.plans import plan_alone
from autograder.grading.run import NOT_RUN, Run, collect
from autograder.model.banned_uses import (
    Use,
    banned_uses,
    is_defined_unseen,
    may_change_unseen,
    uses_beside,
)
from autograder.model.definitions import clear_cache
from autograder.model.judge import could_not_judge, draw, refuse
from autograder.model.note import Note
from autograder.model.result import Result
from autograder.model.submission import Submission
from autograder.model.task import Answer, Case, Lab, Task, Verdict
from autograder.sandbox.host.sandbox import Sandbox

__all__ = ["Graded", "add_outputs", "grade"]

_HELD_BACK = 0.25  # share of the allowance reserved for exercises that run again alone

Solutions = Mapping[str, str]


@dataclass(frozen=True)
class Graded:
    """One submission's result, and the answers that it is based on."""

    #: The result.
    result: Result
    #: The answers by task.
    answers: Mapping[str, Sequence[Answer]]
    #: By task, the digest of its probe and inputs, which identifies the questions.
    asked: Mapping[str, str] = field(default_factory=dict)

    @property
    def busy(self) -> bool:
        """Whether the machine was too busy to judge all of it."""
        return any(answer.busy for given in self.answers.values() for answer in given)


def grade(
    lab: Lab,
    submission: Submission,
    sandbox: Sandbox,
    secret: bytes,
    solutions: Solutions | None = None,
) -> Graded:
    """Run a submission's cells and its tasks' probes in `sandbox`, and judge the answers.

    An exercise that isn't correct runs once more without the student's other exercises, and keeps
    the better score. `solutions` are the sources of the reference solutions by task; in that second
    run, those that the exercise builds on replace the student's.
    """
    try:
        return _grade(lab, submission, sandbox, secret, solutions or {})
    finally:
        clear_cache()


def _grade(
    lab: Lab, submission: Submission, sandbox: Sandbox, secret: bytes, solutions: Solutions
) -> Graded:
    verdicts, waiting, apart = _decided(lab, submission, sandbox, secret, solutions)
    run, judged = _run(lab, submission, sandbox, waiting, apart, solutions)
    for task in lab.tasks:
        if task.id not in judged:
            continue
        verdicts[task.id] = judged[task.id][1]
        if verdicts[task.id].points and (unread := _unread(task, lab, submission, run)):
            verdicts[task.id] = unread
            del judged[task.id], waiting[task.id]
    result = Result(
        student=submission.student,
        lab=lab.name,
        end="graded",
        verdicts=tuple(verdicts[task.id] for task in lab.tasks),
        notebook=add_outputs(submission, run),
        notes=(*submission.notes, *(Note("sandbox", said) for said in sandbox.notes)),
        isolated=sandbox.isolated,
        release=submission.release,
        seconds={task: round(seconds, 6) for task, seconds in run.seconds.items()},
    )
    asked = {task.id: asked_of(task, waiting[task.id]) for task in lab.tasks if task.id in waiting}
    return Graded(result, {task: answers for task, (answers, _) in judged.items()}, asked)


def _run(
    lab: Lab,
    submission: Submission,
    sandbox: Sandbox,
    waiting: Mapping[str, Sequence[Case]],
    apart: set[str],
    solutions: Solutions,
) -> tuple[Run, dict[str, Judged]]:
    """Run everything, and what isn't correct once more; return the first run, and what counts."""
    left = Allowance(sandbox.limits)
    with left.holding_back(_HELD_BACK):
        together = {task: cases for task, cases in waiting.items() if task not in apart}
        run = collect(submission, sandbox, lab.tasks, together, left)
    judged: dict[str, Judged] = {}
    for task in lab.tasks:
        if task.id not in waiting:
            continue
        cases = waiting[task.id]
        answers = (
            [Answer(lost=NOT_RUN)] * len(cases)
            if task.id in apart
            else explained_answers(task, run, submission.cells, len(cases))
        )
        judged[task.id] = judge_run(task, cases, answers, run.busy)
    second_runs = SecondRuns(submission, sandbox, left, solutions, run.failed_cells)
    doubtful = [task for task in lab.tasks if task.id in judged and _is_doubtful(judged[task.id])]
    for number, task in enumerate(doubtful):
        with left.holding_back(1 - 1 / (len(doubtful) - number)):
            judged[task.id] = second_runs.better(task, waiting[task.id], judged[task.id])
    return run, judged


def _is_doubtful(judged: Judged) -> bool:
    """Whether a second run may give a better verdict."""
    answers, verdict = judged
    return verdict.status != "right" and not any(answer.busy for answer in answers)


def _decided(
    lab: Lab, submission: Submission, sandbox: Sandbox, secret: bytes, solutions: Solutions
) -> tuple[dict[str, Verdict], dict[str, list[Case]], set[str]]:
    """The verdicts that need no run, all other tasks' cases, and the tasks to run only alone."""
    verdicts: dict[str, Verdict] = {}
    waiting: dict[str, list[Case]] = {}
    apart: set[str] = set()
    for task in lab.tasks:
        try:
            uses, is_apart = _uses(task, lab, submission, solutions)
        except RecursionError:
            verdicts[task.id] = could_not_judge(task, _TOO_DEEP)
            continue
        if uses:
            verdicts[task.id] = refuse(task, uses, lab.allows)
        elif task.needs_gpu and not sandbox.has_gpu:
            verdicts[task.id] = could_not_judge(task, _NEEDS_GPU, "needs_gpu")
        elif task.ranks and not sandbox.keeps_ranks_apart:
            verdicts[task.id] = could_not_judge(task, _NEEDS_NAMESPACES, "needs_isolation")
        else:
            waiting[task.id] = draw(task, secret, submission.student, submission.raw)
            apart |= {task.id} if is_apart else set()
    return verdicts, waiting, apart


def _uses(
    task: Task, lab: Lab, submission: Submission, solutions: Solutions
) -> tuple[list[Use], bool]:
    """The banned uses in a solution, and whether it may run only without the other exercises.

    Other cells may secretly do the solution's work. If it doesn't need them, they don't run.
    """
    if uses := banned_uses(task, submission.cells, lab.allows):
        return uses, False
    beside = uses_beside(task, submission.cells, lab.allows)
    if not beside and not may_change_unseen(task, submission.cells):
        return [], False
    plan = plan_alone(task, submission, solutions)
    needed = beside if plan is None else uses_beside(task, plan.cells, lab.allows)
    return needed, plan is not None


def _unread(task: Task, lab: Lab, submission: Submission, run: Run) -> Verdict | None:
    """The verdict on a solution that earned points but isn't the code that was checked.

    A failed cell may not have replaced what it seemed to replace, and code may define names unseen.
    """
    failed = run.failed_cells
    if failed and (uses := banned_uses(task, submission.cells, lab.allows, failed)):
        return refuse(task, uses, lab.allows)
    if is_defined_unseen(task, submission.cells):
        return could_not_judge(task, _DEFINED_UNSEEN)
    return None


_NEEDS_GPU = (
    "This exercise needs a GPU, and the grading machine has none. Its points are left out of your "
    "total."
)
_NEEDS_NAMESPACES = (
    "In this exercise processes communicate, and the grading machine can't separate them from "
    "other submissions' processes. The exercise needs a machine with Linux namespaces. Its points "
    "are left out of your total."
)
_DEFINED_UNSEEN = (
    "The grader couldn't find the code that defines this exercise's function. An instructor will "
    "look at it."
)
_TOO_DEEP = (
    "The grader couldn't read your code: an expression is nested too deeply. An instructor will "
    "look at it."
)


def add_outputs(submission: Submission, run: Run) -> dict[str, Any]:
    """Return the submission's notebook with the run's outputs."""
    cells = list(submission.notebook["cells"])
    for index, outputs in run.outputs.items():
        cells[index] = {**cells[index], "outputs": outputs}
    return {**submission.notebook, "cells": cells}
