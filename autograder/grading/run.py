"""Runs a submission's cells and its tasks' probes, in as many processes as needed.

A cell or a probe that kills its process costs only itself: the rest runs again in a fresh process
without it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from autograder.base.limits import Allowance, MachineBusy, ProcessLost
from autograder.grading.imports import needed
from autograder.grading.outputs import Kept, error_output
from autograder.grading.plans import Plan, plan_together
from autograder.model.submission import Submission
from autograder.model.task import Answer, Case, Task
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.student import SandboxStudent

__all__ = ["NOT_RUN", "Run", "collect", "collect_alone"]

_MAX_TIMED_OUT = 2  # cases of a task that may time out; after that, most others would too
_LATE = ("TimeLimit", "RanksTimeout")
NOT_RUN = "Your notebook used up its time or its output limit before this exercise ran."


@dataclass
class Run:
    """Everything one submission has shown so far, across the processes that were lost."""

    #: Outputs by a cell's index; of a cell that ran several times, the first ones.
    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    #: Why a cell killed its process, by the cell's index.
    lost_cells: dict[int, str] = field(default_factory=dict)
    #: The indices of cells that ended in an error in some process.
    failed_cells: set[int] = field(default_factory=set)
    #: Answers by task and by the case's number.
    answers: dict[str, dict[int, Answer]] = field(default_factory=dict)
    #: Why the machine was too busy to run everything; other failures may then result from that.
    busy: str = ""
    #: The remaining allowance for outputs.
    kept: Kept = field(default_factory=Kept)
    #: Wall time of the probes by task.
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


@dataclass(frozen=True)
class _Batch:
    """Some cases of a task."""

    #: The task.
    task: Task
    #: All of its cases.
    cases: Sequence[Case]
    #: The indices of those to run.
    numbers: Sequence[int]
    #: Once this many of the task's cases have timed out, no more of them run.
    most_timed_out: int = _MAX_TIMED_OUT


def collect(
    submission: Submission,
    sandbox: Sandbox,
    tasks: Sequence[Task],
    waiting: Mapping[str, Sequence[Case]],
    left: Allowance | None = None,
) -> Run:
    """Run a submission's cells and all waiting cases of `tasks`, restarting after each loss.

    Each task's probe finds the names as they stood at the task's own cell.
    """
    asked = [task for task in tasks if task.id in waiting]
    run = Run(answers={task.id: {} for task in asked})
    # Fixed cases of all tasks come last, for the reason that `_fixed_last` gives.
    todo = [
        _Batch(task, cases, [n for n, case in enumerate(cases) if case.fixed == fixed])
        for fixed in (False, True)
        for task in asked
        for cases in [waiting[task.id]]
    ]
    plan = _light(plan_together(asked, submission.cells), tasks)
    _finish(
        todo, plan, run, submission.files, sandbox=sandbox, left=left or Allowance(sandbox.limits)
    )
    return run


def collect_alone(
    task: Task,
    cases: Sequence[Case],
    before: Sequence[Answer],
    *,
    plan: Plan,
    submission: Submission,
    sandbox: Sandbox,
    left: Allowance,
    numbers: Sequence[int] | None = None,
) -> Run:
    """Run all cases of one task, or those with these `numbers`, by a plan for this task alone.

    A case whose answer `before` was in doubt gets its own process, so that memory left behind by
    the task's other cases doesn't count as held before it.
    """
    run = Run(answers={task.id: {}})
    apart = [number for number, answer in enumerate(before) if answer.is_held_against]
    asked = range(len(cases)) if numbers is None else numbers
    rest = _fixed_last(cases, (number for number in asked if number not in apart))
    for batch in [*([number] for number in apart), rest]:
        todo = [_Batch(task, cases, batch, most_timed_out=1)]
        light = _light(plan, [task])
        _finish(todo, light, run, submission.files, sandbox=sandbox, left=left)
    if plan.has_solutions:
        for number, answer in run.answers[task.id].items():
            run.answers[task.id][number] = replace(answer, beside_solutions=True)
    return run


def _fixed_last(cases: Sequence[Case], numbers: Iterable[int]) -> list[int]:
    """The cases in order, fixed ones last: a drawn case's input and error are shown to the student.

    Anything that a function remembers from fixed cases must not leak into these.
    """
    return sorted(numbers, key=lambda number: cases[number].fixed)


def _light(plan: Plan, tasks: Sequence[Task]) -> Plan:
    """The plan without unused given imports; unchanged for an ordinary assignment."""
    names = {name for task in tasks for name in task.defines}
    return replace(plan, cells=needed(plan.cells, names)) if tasks else plan


def _finish(
    todo: list[_Batch],
    plan: Plan,
    run: Run,
    files: Mapping[str, bytes],
    *,
    sandbox: Sandbox,
    left: Allowance,
) -> None:
    """Run the plan's cells and all batches, in one process after another."""
    finished = lost = False
    # Each start but the last loses a cell or a task, which isn't run again. So the starts are
    # bounded by their number, and all share one allowance of time.
    while not finished and left.spent() is None:
        left.use_start()
        student = sandbox.open()
        try:
            student.share(left)
            student.place(files)
            with suppress(ProcessLost):
                _run_cells(plan, student, run)
                finished = _run_batches(todo, student, run)
            lost = student.is_lost
            sandbox.make_ready()
        finally:
            sandbox.part_with(student)
    if not finished and isinstance(spent := left.spent(), MachineBusy):
        run.busy = str(spent)
    if lost:
        sandbox.open().close()  # raises if the whole sandbox is gone, which isn't their fault


def _run_batches(todo: list[_Batch], student: SandboxStudent, run: Run) -> bool:
    """Run batches until all are done, or one kills the process; return whether all are done."""
    lost = False
    while todo and not lost:
        batch = todo.pop(0)
        begun = time.perf_counter()
        lost = _run_cases(batch, run.answers[batch.task.id], student)
        run.seconds[batch.task.id] += time.perf_counter() - begun
    return not todo


def _run_cells(plan: Plan, student: SandboxStudent, run: Run) -> None:
    last = {cell.index: number for number, cell in enumerate(plan.cells)}
    for number, cell in enumerate(plan.cells):
        if cell.index in run.lost_cells:
            continue
        keep = plan.keep.get(cell.index) if last[cell.index] == number else None
        try:
            watched = plan.watched and cell.kind in ("own", "solution")
            outputs = student.run_cell(cell.source, keep, watched=watched)
            if any(map(_is_error, outputs)):
                run.failed_cells.add(cell.index)
            if cell.index not in run.outputs:
                run.outputs[cell.index] = run.kept.keep(outputs)
        except ProcessLost as error:
            run.lost_cells[cell.index] = str(error)
            run.failed_cells.add(cell.index)
            if isinstance(error, MachineBusy):
                run.busy = str(error)
            run.outputs[cell.index] = [error_output("Stopped", str(error))]
            raise


def _is_error(output: Any) -> bool:
    kind = output.get("output_type") if isinstance(output, Mapping) else None
    return isinstance(kind, str) and kind == "error"  # it may be an array


def _run_cases(batch: _Batch, answers: dict[int, Answer], student: SandboxStudent) -> bool:
    """Add the answers to a batch of cases; return whether that lost the process.

    After a loss, or too many timeouts, the remaining cases fail for the same reason.
    """
    task = batch.task
    for number in batch.numbers:
        if number in answers:
            continue
        case = batch.cases[number]
        ask = task.ask(case) if task.ask else None
        answer = answers[number] = student.run(
            task.probe_path,
            case.inputs,
            ask,
            seconds=task.seconds,
            budget=case.budget,
            state=task.id,
            ranks=case.inputs["world"] if task.ranks else 0,
        )
        if answer.lost is not None or _timed_out(answers.values()) >= batch.most_timed_out:
            rest = Answer(raised=answer.raised, lost=answer.lost, busy=answer.busy)
            for other in range(len(batch.cases)):
                answers.setdefault(other, rest)
            return answer.lost is not None
    return False


def _timed_out(answers: Iterable[Answer]) -> int:
    return sum(a.raised is not None and a.raised[0] in _LATE for a in answers)
