"""Grade: one submission in, one Result out, with the answers that it rests on."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autograder.ban import banned_uses
from autograder.clean import safe_output
from autograder.judge import could_not_judge, draw, judge, refuse
from autograder.result import Result
from autograder.sandbox import ProcessLost, Sandbox, SandboxStudent
from autograder.submission import RunCell, Submission
from autograder.task import Answer, Case, Lab, Task, Verdict

__all__ = ["Graded", "grade"]

_MAX_STARTS = 4  # how often one submission's process may be started again
_MAX_OUTPUTS = 300  # of one cell
_MAX_OUTPUT = 6_000_000  # characters of one cell's outputs as JSON, figures included
_LOST = "The process was lost too often to go on."


@dataclass(frozen=True)
class Graded:
    """One submission's result, and the answers that it was judged on, by task."""

    result: Result
    answers: Mapping[str, Sequence[Answer]]


@dataclass
class _Run:
    """What one submission has shown so far. It outlives the processes that are lost on the way."""

    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    lost_cells: dict[int, str] = field(default_factory=dict)
    answers: dict[str, list[Answer]] = field(default_factory=dict)


def grade(lab: Lab, submission: Submission, sandbox: Sandbox, secret: bytes) -> Graded:
    """Run a submission's cells and its tasks' probes in `sandbox`, and judge the answers.

    A cell or a probe that takes the process with it costs only itself: the rest is run again in a
    fresh process, without it.
    """
    sources = [cell.source for cell in submission.cells if cell.kind != "given"]
    verdicts: dict[str, Verdict] = {}
    waiting: dict[str, list[Case]] = {}
    for task in lab.tasks:
        try:
            uses = banned_uses(task.ban, task.defines, sources)
        except RecursionError:
            verdicts[task.id] = could_not_judge(task, _TOO_DEEP)
            continue
        if uses:
            verdicts[task.id] = refuse(task, _banned(task, uses))
        elif task.needs_gpu and not sandbox.has_gpu:
            verdicts[task.id] = could_not_judge(task, _NEEDS_GPU, "needs_gpu")
        else:
            waiting[task.id] = draw(task, secret, submission.student, submission.raw)
    run = _answers(lab, submission, sandbox, waiting)
    for task in lab.tasks:
        if task.id in waiting:
            answers = run.answers[task.id] = _explain(task, run, submission.cells)
            verdicts[task.id] = _judged(task, waiting[task.id], answers)
    result = Result(
        student=submission.student,
        lab=lab.name,
        end="graded",
        verdicts=tuple(verdicts[task.id] for task in lab.tasks),
        notebook=_with_outputs(submission, run),
        notes=submission.notes,
        isolated=sandbox.isolated,
    )
    return Graded(result, run.answers)


_NEEDS_GPU = (
    "This exercise needs a GPU, and the machine that graded has none. Its points are left out of "
    "your total."
)
_TOO_DEEP = (
    "The grader could not read your code: an expression in it is nested too deep. A person will "
    "look at it."
)


def _banned(task: Task, uses: Sequence[str]) -> str:
    reason = task.ban.reason or "This exercise is about writing that yourself."
    return f"Your solution uses {', '.join(uses)}, so it earns no points. {reason}"


def _judged(task: Task, cases: Sequence[Case], answers: Sequence[Answer]) -> Verdict:
    try:
        return judge(task, cases, answers)
    except Exception as error:
        # The judge met an answer that it was not written for. That is the grader's fault, and a
        # person's to look at: it neither earns nor costs.
        kind = type(error).__name__
        return could_not_judge(
            task, f"The grader could not read this answer ({kind}). A person will look at it."
        )


def _answers(
    lab: Lab, submission: Submission, sandbox: Sandbox, waiting: Mapping[str, Sequence[Case]]
) -> _Run:
    """Collect the answers to all waiting cases, starting again after each loss."""
    run = _Run()
    todo = [task for task in lab.tasks if task.id in waiting]
    for _ in range(_MAX_STARTS):
        with sandbox.open() as student:
            try:
                _run_cells(submission.cells, student, run)
            except ProcessLost:
                continue
            while todo:
                task = todo.pop(0)
                answers = _run_task(lab, task, waiting[task.id], student)
                run.answers[task.id] = answers
                if answers and answers[-1].lost is not None:
                    break
        if not todo:
            return run
    for task in todo:
        run.answers[task.id] = [Answer(lost=_LOST)] * len(waiting[task.id])
    return run


def _run_cells(cells: Sequence[RunCell], student: SandboxStudent, run: _Run) -> None:
    for cell in cells:
        if cell.index in run.lost_cells:
            continue
        try:
            run.outputs[cell.index] = _kept(student.run_cell(cell.source))
        except ProcessLost as error:
            run.lost_cells[cell.index] = str(error)
            run.outputs[cell.index] = [_error_output("Stopped", str(error))]
            raise


def _run_task(lab: Lab, task: Task, cases: Sequence[Case], student: SandboxStudent) -> list[Answer]:
    answers: list[Answer] = []
    for case in cases:
        ask = task.ask(case) if task.ask else None
        answer = student.run(task.probe_path, case.inputs, ask, task.seconds)
        answers.append(answer)
        if answer.lost is not None:
            break
    # What was not asked any more is lost for the same reason as the case that took the process.
    return answers + [Answer(lost=answers[-1].lost)] * (len(cases) - len(answers))


def _explain(task: Task, run: _Run, cells: Sequence[RunCell]) -> list[Answer]:
    """Where a name is missing because its cell failed, let the message say that instead."""
    answers = run.answers[task.id]
    trouble = _trouble(task, run, cells)
    if trouble is None:
        return answers
    return [
        Answer(raised=("NotDefined", trouble, ""))
        if answer.raised is not None and answer.raised[0] == "NotDefined"
        else answer
        for answer in answers
    ]


def _trouble(task: Task, run: _Run, cells: Sequence[RunCell]) -> str | None:
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


def _with_outputs(submission: Submission, run: _Run) -> dict[str, Any]:
    notebook = copy.deepcopy(submission.notebook)
    for index, outputs in run.outputs.items():
        notebook["cells"][index]["outputs"] = outputs
    return notebook


def _kept(outputs: Sequence[Any]) -> list[dict[str, Any]]:
    """A cell's outputs as its process sent them, made safe, and within bounds."""
    kept: list[dict[str, Any]] = []
    left = _MAX_OUTPUT
    for output in outputs[:_MAX_OUTPUTS]:
        try:
            text = json.dumps(output)
        except (TypeError, ValueError):
            continue  # no output that the recorder makes
        left -= len(text)
        if left < 0:
            return [_error_output("TooMuchOutput", f"over {_MAX_OUTPUT:,} characters of output")]
        if isinstance(output, Mapping):
            kept.append(safe_output(json.loads(text)))
    return kept


def _error_output(name: str, message: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": message, "traceback": [message]}
