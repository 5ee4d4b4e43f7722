"""Grades one submission: runs its cells and probes, judges the answers, returns one Result.

Long because it decides in one place what runs, what runs again, and which verdict counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from autograder.base.limits import Allowance
from autograder.content.provenance import asked_of
from autograder.grading.plans import plan_alone, plan_together
from autograder.grading.run import NOT_RUN, Run, collect, collect_alone
from autograder.model.banned_uses import (
    Use,
    banned_uses,
    is_defined_unseen,
    may_change_unseen,
    uses_beside,
)
from autograder.model.definitions import clear_cache
from autograder.model.judge import could_not_judge, draw, judge_answer, judge_safely, refuse
from autograder.model.note import Note
from autograder.model.result import Result
from autograder.model.state import is_written
from autograder.model.submission import RunCell, Submission
from autograder.model.task import CALLS_UNWRITTEN, Answer, Case, Lab, Task, Verdict
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.student import NO_BUDGETS

__all__ = ["Graded", "add_outputs", "grade", "judge_run"]

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
    left = Allowance(sandbox.limits)
    with left.holding_back(_HELD_BACK):
        together = {task: cases for task, cases in waiting.items() if task not in apart}
        run = collect(submission, sandbox, lab.tasks, together, left)
    answers: dict[str, list[Answer]] = {}
    doubtful: list[Task] = []
    failed = run.failed_cells
    for task in lab.tasks:
        if task.id not in waiting:
            continue
        cases = waiting[task.id]
        said = (
            [Answer(lost=NOT_RUN)] * len(cases)
            if task.id in apart
            else _explain(task, run, submission.cells, len(cases))
        )
        answers[task.id], verdicts[task.id] = judge_run(task, cases, said, run.busy)
        if verdicts[task.id].status != "right" and not any(a.busy for a in answers[task.id]):
            doubtful.append(task)
    while doubtful:
        with left.holding_back(1 - 1 / len(doubtful)):
            task = doubtful.pop(0)
            first = answers[task.id], verdicts[task.id]
            answers[task.id], verdicts[task.id] = _run_alone(
                task,
                waiting[task.id],
                first,
                submission=submission,
                sandbox=sandbox,
                left=left,
                solutions=solutions,
                failed=failed,
            )
    for task in lab.tasks:
        if task.id in answers and verdicts[task.id].points:
            unread = _unread(task, lab, submission, failed)
            if unread is not None:
                verdicts[task.id] = unread
                del answers[task.id], waiting[task.id]
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
    return Graded(result, answers, asked)


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


def _unread(task: Task, lab: Lab, submission: Submission, failed: set[int]) -> Verdict | None:
    """The verdict on a solution that earned points but isn't the code that was checked.

    A failed cell may not have replaced what it seemed to replace, and code may define names unseen.
    """
    if failed and (uses := banned_uses(task, submission.cells, lab.allows, failed)):
        return refuse(task, uses, lab.allows)
    if is_defined_unseen(task, submission.cells):
        return could_not_judge(task, _DEFINED_UNSEEN)
    return None


def _run_alone(
    task: Task,
    cases: Sequence[Case],
    first: tuple[list[Answer], Verdict],
    *,
    submission: Submission,
    sandbox: Sandbox,
    left: Allowance,
    solutions: Solutions,
    failed: set[int],
) -> tuple[list[Answer], Verdict]:
    """Run an exercise that isn't correct once more without the others; return the better run.

    The indices of cells that fail are added to `failed`.
    """
    answers, verdict = first
    if any(answer.doubt == NO_BUDGETS for answer in answers):
        return first  # a second run wouldn't have any either
    plan = plan_alone(task, submission, solutions)
    if plan is None and any(answer.is_held_against for answer in answers):
        plan = plan_together([task], submission.cells)
    if plan is None:
        return first
    collect_more = partial(
        collect_alone, task, cases, answers, plan=plan, submission=submission, sandbox=sandbox
    )
    is_first = all(answer.lost == NOT_RUN for answer in answers)
    # An exercise that another one builds on isn't written, which says nothing about the other one.
    is_judged = verdict.status != "could_not_judge"
    calls_unwritten = is_judged and _calls_unwritten(task, cases, answers)
    if is_judged and not (is_first or calls_unwritten):
        telling = _telling_cases(task, cases, answers)
        run = collect_more(left=left, numbers=[*telling])
        if not _may_gain(task, cases, telling, run):
            return first
    run = collect_more(left=left)
    failed |= run.failed_cells
    again = _answers(task, run, submission.cells, len(cases))
    again, second = judge_run(task, cases, again, run.busy)
    # A doubtful answer may prove incorrect without the others, but a missing one settles nothing.
    settled = second.status != "could_not_judge" and not any(a.lost is not None for a in again)
    shows_more = calls_unwritten and settled and not _calls_unwritten(task, cases, again)
    counts = (
        second.points > verdict.points
        or is_first
        or (settled and not is_judged)
        or (shows_more and second.points == verdict.points)
        or any(answer.busy for answer in again)
    )
    return (again, second) if counts else first


def _calls_unwritten(task: Task, cases: Sequence[Case], answers: Sequence[Answer]) -> bool:
    return any(
        finding == CALLS_UNWRITTEN
        for case, answer in zip(cases, answers, strict=True)
        for finding in judge_answer(task, case, answer).values()
    )


def _telling_cases(
    task: Task, cases: Sequence[Case], answers: Sequence[Answer]
) -> dict[int, dict[str, float]]:
    """The cases that limit each lost part most: the points they leave, by case number and part.

    Unless the answers to these cases change, the second run can't gain anything. A part worth no
    points limits nothing.
    """
    least: dict[str, tuple[float, int]] = {}
    for number, (case, answer) in enumerate(zip(cases, answers, strict=True)):
        for part, finding in judge_answer(task, case, answer).items():
            if not finding.ok and task.parts[part]:
                least[part] = min(least.get(part, (math.inf, 0)), (finding.points, number))
    telling: dict[int, dict[str, float]] = {}
    for part, (points, number) in least.items():
        telling.setdefault(number, {})[part] = points
    return telling


def _may_gain(
    task: Task, cases: Sequence[Case], telling: Mapping[int, Mapping[str, float]], run: Run
) -> bool:
    """Whether a lost part is no longer limited by the case that limited it the most."""
    answers = [run.answers[task.id].get(number, Answer(lost=NOT_RUN)) for number in telling]
    verdict = judge_safely(task, [cases[number] for number in telling], answers)
    left = {part: points for lost in telling.values() for part, points in lost.items()}
    gains = any(verdict.earned[part] > points for part, points in left.items())
    return gains or verdict.status == "could_not_judge" or bool(run.busy)


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


def judge_run(
    task: Task, cases: Sequence[Case], answers: Sequence[Answer], busy: str
) -> tuple[list[Answer], Verdict]:
    """Return the answers and the verdict on them.

    `busy` says why part of the notebook didn't run. An answer may then be incorrect because that
    part is missing, which isn't the student's mistake.
    """
    verdict = judge_safely(task, cases, answers)
    if busy and verdict.status in ("wrong", "partly"):
        answers = [Answer(lost=busy, busy=True)] * len(cases)
        verdict = judge_safely(task, cases, answers)
    return list(answers), verdict


def _explain(task: Task, run: Run, cells: Sequence[RunCell], count: int) -> list[Answer]:
    """A task's answers; if one is missing because its cell failed, it says so."""
    answers = _answers(task, run, cells, count)
    trouble = _trouble(task, run, cells)
    if trouble is None:
        return answers
    return [
        Answer(raised=("NotDefined", trouble, "")) if _is_missing(answer) else answer
        for answer in answers
    ]


def _is_missing(answer: Answer) -> bool:
    return answer.lost == NOT_RUN or (answer.raised or ("",))[0] == "NotDefined"


def _answers(task: Task, run: Run, cells: Sequence[RunCell], count: int) -> list[Answer]:
    """A run's answers to all of a task's cases, which say whether the exercise is written."""
    written = is_written(task, cells)
    answers = (run.answers[task.id].get(n, Answer(lost=NOT_RUN)) for n in range(count))
    return [replace(answer, is_written=written) for answer in answers]


def _trouble(task: Task, run: Run, cells: Sequence[RunCell]) -> str | None:
    for cell in cells:
        if cell.task != task.id:
            continue
        if cell.index in run.lost_cells:
            return f"The exercise's cell defined nothing. {run.lost_cells[cell.index]}"
        for output in run.outputs.get(cell.index, ()):
            if output["output_type"] == "error":
                what = f"{output['ename']}: {output['evalue']}"
                return f"The exercise's cell failed, so it defined nothing. {what}"
    return None


def add_outputs(submission: Submission, run: Run) -> dict[str, Any]:
    """Return the submission's notebook with the run's outputs."""
    cells = list(submission.notebook["cells"])
    for index, outputs in run.outputs.items():
        cells[index] = {**cells[index], "outputs": outputs}
    return {**submission.notebook, "cells": cells}
