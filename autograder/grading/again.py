"""Runs an exercise that isn't correct once more without the others, and picks the better run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from autograder.base.limits import Allowance
from autograder.grading.judging import Judged, answers_of, judge_run
from autograder.grading.plans import Plan, plan_alone, plan_together
from autograder.grading.run import NOT_RUN, Run, collect_alone
from autograder.model.judge import judge_answer, judge_safely
from autograder.model.submission import Submission
from autograder.model.task import CALLS_UNWRITTEN, Answer, Case, Task
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.student import NO_BUDGETS

__all__ = ["SecondRuns"]


@dataclass(frozen=True)
class SecondRuns:
    """The second runs of one submission's exercises."""

    #: The submission.
    submission: Submission
    #: Where they run.
    sandbox: Sandbox
    #: The allowance that they share.
    left: Allowance
    #: The sources of the reference solutions by task.
    solutions: Mapping[str, str]
    #: The indices of cells that failed in the first run; second runs add theirs.
    failed: set[int]

    def better(self, task: Task, cases: Sequence[Case], first: Judged) -> Judged:
        """Run an exercise that isn't correct again without the others; return the better run."""
        answers, verdict = first
        if any(answer.doubt == NO_BUDGETS for answer in answers):
            return first  # a second run wouldn't have any either
        plan = plan_alone(task, self.submission, self.solutions)
        if plan is None and any(answer.is_held_against for answer in answers):
            plan = plan_together([task], self.submission.cells)
        if plan is None:
            return first
        collect_more = partial(self._collect, task, cases, answers, plan)
        is_first = all(answer.lost == NOT_RUN for answer in answers)
        # An exercise that this one builds on isn't written, which says nothing about this one.
        is_judged = verdict.status != "could_not_judge"
        calls_unwritten = is_judged and _calls_unwritten(task, cases, answers)
        if is_judged and not (is_first or calls_unwritten):
            telling = _telling_cases(task, cases, answers)
            run = collect_more([*telling])
            if not _may_gain(task, cases, telling, run):
                return first
        run = collect_more()
        self.failed.update(run.failed_cells)
        again = answers_of(task, run, self.submission.cells, len(cases))
        again, second = judge_run(task, cases, again, run.busy)
        # A doubtful answer may prove incorrect this time, but a missing one settles nothing.
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

    def _collect(
        self,
        task: Task,
        cases: Sequence[Case],
        before: Sequence[Answer],
        plan: Plan,
        numbers: Sequence[int] | None = None,
    ) -> Run:
        return collect_alone(
            task,
            cases,
            before,
            plan=plan,
            submission=self.submission,
            sandbox=self.sandbox,
            left=self.left,
            numbers=numbers,
        )


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
