"""Grade: one submission in, one Result out, with the answers that it rests on."""

from __future__ import annotations

import html
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from autograder.asked import asked_of
from autograder.ban import banned_uses
from autograder.clean import safe_output
from autograder.definitions import forget
from autograder.judge import could_not_judge, draw, judge_safely, refuse
from autograder.limits import OUTPUT_BYTES, Allowance, MachineBusy, ProcessLost
from autograder.result import Result
from autograder.sandbox import Sandbox
from autograder.sandbox_student import SandboxStudent
from autograder.submission import RunCell, Submission
from autograder.task import Answer, Case, Lab, Task, Verdict

__all__ = ["LOST", "Graded", "Run", "collect", "grade", "judge_run", "with_outputs"]

_MAX_TIMED_OUT = 2  # cases of a task that may use up their time; one that loops mostly always does
_MAX_OUTPUTS = 300  # of one cell
_MAX_TAGS = 200_000  # signs < in the outputs of all cells: HTML is cleaned, which takes time
LOST = "Your notebook used up its time, or what it may send, before this was run."


@dataclass(frozen=True)
class Graded:
    """One submission's result, the answers that it was judged on, and to what, by task.

    `asked` has a digest of what each task's answers are answers to: its probe and its inputs.
    """

    result: Result
    answers: Mapping[str, Sequence[Answer]]
    asked: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Run:
    """What one submission has shown so far. It outlives the processes that are lost on the way.

    `outputs` and `lost_cells`, with the reasons, go by the cell's place in the notebook. Of a cell
    that ran several times the first outputs are kept. `busy` says why the machine was too busy to
    run all of it; then what failed may have failed because the rest is missing.
    """

    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    lost_cells: dict[int, str] = field(default_factory=dict)
    answers: dict[str, dict[int, Answer]] = field(default_factory=dict)  # by task, by case
    busy: str = ""
    tags_left: int = _MAX_TAGS
    output_bytes_left: int = OUTPUT_BYTES
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))  # by task


def grade(lab: Lab, submission: Submission, sandbox: Sandbox, secret: bytes) -> Graded:
    """Run a submission's cells and its tasks' probes in `sandbox`, and judge the answers.

    A cell or a probe that takes the process with it costs only itself: the rest is run again in a
    fresh process, without it.
    """
    verdicts: dict[str, Verdict] = {}
    waiting: dict[str, list[Case]] = {}
    for task in lab.tasks:
        try:
            uses = banned_uses(task, submission.cells, lab.allows)
        except RecursionError:
            verdicts[task.id] = could_not_judge(task, _TOO_DEEP)
            continue
        if uses:
            verdicts[task.id] = refuse(task, uses, lab.allows)
        elif task.needs_gpu and not sandbox.has_gpu:
            verdicts[task.id] = could_not_judge(task, _NEEDS_GPU, "needs_gpu")
        else:
            waiting[task.id] = draw(task, secret, submission.student, submission.raw)
    forget()
    run = collect(submission, sandbox, lab.tasks, waiting)
    answers: dict[str, list[Answer]] = {}
    for task in lab.tasks:
        if task.id in waiting:
            cases = waiting[task.id]
            said = _explain(task, run, submission.cells, len(cases))
            answers[task.id], verdicts[task.id] = judge_run(task, cases, said, run.busy)
    result = Result(
        student=submission.student,
        lab=lab.name,
        end="graded",
        verdicts=tuple(verdicts[task.id] for task in lab.tasks),
        notebook=with_outputs(submission, run),
        notes=(*submission.notes, *sandbox.notes),
        isolated=sandbox.isolated,
        release=submission.release,
        seconds={task: round(seconds, 6) for task, seconds in run.seconds.items()},
    )
    asked = {task.id: asked_of(task, waiting[task.id]) for task in lab.tasks if task.id in waiting}
    return Graded(result, answers, asked)


_NEEDS_GPU = (
    "This exercise needs a GPU, and the machine that graded has none. Its points are left out of "
    "your total."
)
_TOO_DEEP = (
    "The grader could not read your code: an expression in it is nested too deep. A person will "
    "look at it."
)


def judge_run(
    task: Task, cases: Sequence[Case], answers: Sequence[Answer], busy: str
) -> tuple[list[Answer], Verdict]:
    """Return the answers, and the verdict on them.

    `busy` says why some of the notebook did not run. What is not right may then be so for want of
    that, and is nobody's mistake.
    """
    verdict = judge_safely(task, cases, answers)
    if busy and verdict.status in ("wrong", "partly"):
        answers = [Answer(lost=busy, busy=True)] * len(cases)
        verdict = judge_safely(task, cases, answers)
    return list(answers), verdict


def collect(
    submission: Submission,
    sandbox: Sandbox,
    tasks: Sequence[Task],
    waiting: Mapping[str, Sequence[Case]],
) -> Run:
    """Run a submission's cells and all waiting cases of `tasks`, starting again after each loss."""
    run = Run(answers={task: {} for task in waiting})
    # Fixed cases come last: what is shown of a drawn case that failed cannot tell of them.
    todo = [(t, fixed) for fixed in (False, True) for t in tasks if t.id in waiting]
    left = Allowance(sandbox.limits)
    finished = lost = False
    # Each start but the last one loses a cell or a task, which are not run again. So there are
    # no more starts than these, and all share one allowance of time.
    while not finished and left.spent() is None:
        left.use_start()
        student = sandbox.open()
        try:
            student.share(left)
            student.place(submission.files)
            with suppress(ProcessLost):
                _run_cells(submission.cells, student, run)
                finished = _run_tasks(todo, waiting, student, run)
            lost = student.is_lost
            sandbox.make_ready()
        finally:
            sandbox.part_with(student)
    if not finished and isinstance(spent := left.spent(), MachineBusy):
        run.busy = str(spent)
    _run_doubted_alone(submission, sandbox, tasks, waiting, run, left)
    if lost:
        sandbox.open().close()  # raises where the whole sandbox was lost, by no fault of theirs
    return run


def _run_doubted_alone(
    submission: Submission,
    sandbox: Sandbox,
    tasks: Sequence[Task],
    waiting: Mapping[str, Sequence[Case]],
    run: Run,
    left: Allowance,
) -> None:
    """Run each case that is in doubt once more, in a process where no other exercise has run.

    What another exercise's calls left behind must not count as held before this one's.
    """
    for task in tasks:
        answers = run.answers.get(task.id, {})
        for index, doubted in list(answers.items()):
            if not doubted.doubt or doubted.memory != "within" or left.spent():
                continue
            student = sandbox.open()
            try:
                student.share(left)
                student.place(submission.files)
                with suppress(ProcessLost):
                    _run_cells(submission.cells, student, run)
                    case = waiting[task.id][index]
                    ask = task.ask(case) if task.ask else None
                    answer = student.run(
                        task.probe_path, case.inputs, ask, seconds=task.seconds, budget=case.budget
                    )
                    if answer.lost is None:
                        answers[index] = answer
            finally:
                sandbox.part_with(student)


def _run_tasks(
    todo: list[tuple[Task, bool]],
    waiting: Mapping[str, Sequence[Case]],
    student: SandboxStudent,
    run: Run,
) -> bool:
    """Run what is to do, until all is done, or a task takes the process; whether all is done."""
    lost = False
    while todo and not lost:
        task, fixed = todo.pop(0)
        begun = time.perf_counter()
        lost = _run_cases(task, waiting[task.id], fixed, run.answers[task.id], student)
        run.seconds[task.id] += time.perf_counter() - begun
    return not todo


def _run_cells(cells: Sequence[RunCell], student: SandboxStudent, run: Run) -> None:
    for cell in cells:
        if cell.index in run.lost_cells:
            continue
        try:
            outputs = student.run_cell(cell.source)
            if cell.index not in run.outputs:
                run.outputs[cell.index] = _kept(outputs, run)
        except ProcessLost as error:
            run.lost_cells[cell.index] = str(error)
            if isinstance(error, MachineBusy):
                run.busy = str(error)
            run.outputs[cell.index] = [_error_output("Stopped", str(error))]
            raise


def _run_cases(
    task: Task,
    cases: Sequence[Case],
    fixed: bool,
    answers: dict[int, Answer],
    student: SandboxStudent,
) -> bool:
    """Add the answers to the fixed cases, or to the others; whether that lost the process.

    After such a loss, or too many cases that used up their time, the cases that were not run yet
    fail for the same reason.
    """
    for index, case in enumerate(cases):
        if case.fixed != fixed or index in answers:
            continue
        ask = task.ask(case) if task.ask else None
        answer = answers[index] = student.run(
            task.probe_path,
            case.inputs,
            ask,
            seconds=task.seconds,
            budget=case.budget,
        )
        if answer.lost is not None or _timed_out(answers.values()) == _MAX_TIMED_OUT:
            rest = Answer(raised=answer.raised, lost=answer.lost, busy=answer.busy)
            for other in range(len(cases)):
                answers.setdefault(other, rest)
            return answer.lost is not None
    return False


def _timed_out(answers: Iterable[Answer]) -> int:
    return sum(a.raised is not None and a.raised[0] == "TimeLimit" for a in answers)


def _explain(task: Task, run: Run, cells: Sequence[RunCell], count: int) -> list[Answer]:
    """A task's answers; where one is missing because its cell failed, they say that instead."""
    lost = Answer(lost=LOST)
    answers = [run.answers[task.id].get(index, lost) for index in range(count)]
    trouble = _trouble(task, run, cells)
    if trouble is None:
        return answers
    return [
        Answer(raised=("NotDefined", trouble, ""))
        if answer is lost or (answer.raised is not None and answer.raised[0] == "NotDefined")
        else answer
        for answer in answers
    ]


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


def with_outputs(submission: Submission, run: Run) -> dict[str, Any]:
    """Return the submission's notebook with the outputs of the run."""
    cells = list(submission.notebook["cells"])
    for index, outputs in run.outputs.items():
        cells[index] = {**cells[index], "outputs": outputs}
    return {**submission.notebook, "cells": cells}


def _kept(outputs: Sequence[Any], run: Run) -> list[dict[str, Any]]:
    """A cell's outputs as its process sent them, made safe, and within bounds."""
    kept: list[dict[str, Any]] = []
    left = run.output_bytes_left
    for output in outputs[:_MAX_OUTPUTS]:
        try:
            text = json.dumps(output)
        except (TypeError, ValueError):
            continue  # no output that the recorder makes
        run.tags_left -= text.count("<")
        if len(text) > left or run.tags_left < 0:
            return [_error_output("TooMuchOutput", _TOO_MUCH)]
        if isinstance(output, Mapping):
            kept.append(safe_output(json.loads(text)))
            left -= len(html.escape(json.dumps(kept[-1])))  # what it takes wherever it is kept
    if left < 0:
        return [_error_output("TooMuchOutput", _TOO_MUCH)]
    run.output_bytes_left = left
    return kept


_TOO_MUCH = (
    f"This cell's output was left out: the outputs of a notebook may take "
    f"{OUTPUT_BYTES / 2**20:g} MiB together, and hold {_MAX_TAGS:,} tags of HTML."
)


def _error_output(name: str, message: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": message, "traceback": [message]}
