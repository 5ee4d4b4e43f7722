"""Judges a run: completes the answers to a task's cases, and doubts those of a busy machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autograder.grading.run import NOT_RUN, Run
from autograder.model.judge import judge_safely
from autograder.model.state import is_written
from autograder.model.submission import RunCell
from autograder.model.task import Answer, Case, Task, Verdict

__all__ = ["Judged", "answers_of", "explained_answers", "judge_run"]

Judged = tuple[list[Answer], Verdict]


def judge_run(task: Task, cases: Sequence[Case], answers: Sequence[Answer], busy: str) -> Judged:
    """Return the answers and the verdict on them.

    `busy` says why part of the notebook didn't run. An answer may then be incorrect because that
    part is missing, which isn't the student's mistake.
    """
    verdict = judge_safely(task, cases, answers)
    if busy and verdict.status in ("wrong", "partly"):
        answers = [Answer(lost=busy, busy=True)] * len(cases)
        verdict = judge_safely(task, cases, answers)
    return list(answers), verdict


def explained_answers(task: Task, run: Run, cells: Sequence[RunCell], count: int) -> list[Answer]:
    """Return `answers_of` the run; if one is missing because its cell failed, it says so."""
    answers = answers_of(task, run, cells, count)
    trouble = _trouble(task, run, cells)
    if trouble is None:
        return answers
    return [
        Answer(raised=("NotDefined", trouble, "")) if _is_missing(answer) else answer
        for answer in answers
    ]


def _is_missing(answer: Answer) -> bool:
    return answer.lost == NOT_RUN or (answer.raised or ("",))[0] == "NotDefined"


def answers_of(task: Task, run: Run, cells: Sequence[RunCell], count: int) -> list[Answer]:
    """Return a run's answers to all cases of a task, told whether the exercise is written."""
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
