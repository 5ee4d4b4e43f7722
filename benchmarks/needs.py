"""Answers' needs: the smallest sufficient memory budget for each answer in the answer bank."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autograder.base.course import Course
from autograder.content import find_lab
from autograder.model.judge import draw, judge_answer
from autograder.model.submission import RunCell
from autograder.model.task import Answer, Budget, Case, Lab, Task
from autograder.notebooks.intake import take_in
from autograder.notebooks.released import release_of
from autograder.sandbox.host.sandbox import Sandbox
from autograder.trials.answer_bank import read_bank, submission_with
from autograder.trials.entry import Entry

__all__ = ["Need", "least", "margins", "measure_needs"]

_MIB = 2**20
_FINEST_BYTES = 32 * 2**10  # the search's precision near the smallest budget
_FARTHEST_BYTES = 64 * _MIB  # from the case's budget
_PER_DISTANCE = 64  # far from the budget, the precision is this fraction of the distance


@dataclass(frozen=True)
class Need:
    """The need, beyond a case's budget, of a correct answer or of one with a memory mistake.

    It is in MiB; if negative, the answer has that much memory to spare. `is_bound` says whether the
    search ended before it found the smallest budget; the figure is then only an upper or lower
    bound.
    """

    task: str
    answer: str
    right: bool
    budget_mib: float
    beyond_mib: float
    is_bound: bool = False

    @property
    def is_misjudged(self) -> bool:
        """Whether a correct answer is refused memory, or a memory mistake isn't."""
        return self.beyond_mib > 0 if self.right else self.beyond_mib <= 0

    def __str__(self) -> str:
        sign = "" if not self.is_bound else "<=" if self.beyond_mib < 0 else ">="
        return f"{self.task:28} {self.answer:36} {sign:>2}{self.beyond_mib:+8.2f} MiB"


def measure_needs(lab: Lab, course: Course) -> Iterator[Need]:
    """Find, in the sandbox, the needs of a lab's answers in the answer bank.

    Leaves out answers that are incorrect for reasons other than memory. `lab` must be reduced to
    its cases with a budget.
    """
    entries = read_bank(course.bank, find_lab(lab.name))
    release = release_of(lab.name, course.releases)
    with Sandbox(lab.hides, ranks=lab.ranks) as sandbox:
        for task in lab.tasks:
            for entry in (entry for entry in entries if entry.task == task.id):
                yield from _needs(lab, task, entry, release, sandbox)


def _needs(
    lab: Lab, task: Task, entry: Entry, release: Mapping[str, Any], sandbox: Sandbox
) -> Iterator[Need]:
    """An answer's need in each case; all answers to a task get the same drawn cases."""
    raw = json.dumps(submission_with(release, {task.id: entry.source})).encode()
    cells = take_in("", lab.name, raw, release).cells
    for case in draw(task, bytes(32), "", b""):
        outcome = _outcome(task, case, cells, sandbox)
        if entry.kind == "right" or _is_of_memory(task, case, entry, outcome):
            yield _need(task, case, entry, outcome)


def _need(task: Task, case: Case, entry: Entry, outcome: Callable[[int], Answer]) -> Need:
    own = case.budget or Budget(0)
    found, is_bound = least(lambda beyond: outcome(own.bytes + beyond).memory != "refused")
    return Need(
        task=task.id,
        answer=f"{entry.kind}_{entry.name}",
        right=entry.kind == "right",
        budget_mib=round(own.bytes / _MIB, 2),
        beyond_mib=round(found / _MIB, 2),
        is_bound=is_bound,
    )


def _outcome(
    task: Task, case: Case, cells: Sequence[RunCell], sandbox: Sandbox
) -> Callable[[int], Answer]:
    """Return a function that runs the case from scratch under a budget of this many bytes."""

    def run(budget_bytes: int) -> Answer:
        own = case.budget or Budget(0)
        with sandbox.open() as student:
            for cell in cells:
                student.run_cell(cell.source)
            sandbox.make_ready()
            return student.run(
                task.probe_path,
                case.inputs,
                task.ask(case) if task.ask else None,
                seconds=task.seconds,
                budget=replace(own, bytes=max(budget_bytes, 0)),
                ranks=case.inputs["world"] if task.ranks else 0,
            )

    return run


def least(suffices: Callable[[int], bool]) -> tuple[int, bool]:
    """Return the smallest number of bytes that suffices, and whether it is only a bound.

    The search moves away from 0 in doubling steps, then bisects.
    """
    sign = -1 if suffices(0) else 1
    near, far = 0, _MIB // 2
    while suffices(sign * far) == (sign < 0):
        if far >= _FARTHEST_BYTES:
            return sign * far, True
        near, far = far, 2 * far
    while far - near > max(_FINEST_BYTES, near // _PER_DISTANCE):
        middle = (near + far) // 2
        if suffices(sign * middle) == (sign < 0):
            near = middle
        else:
            far = middle
    return (-near, False) if sign < 0 else (far, False)


def _is_of_memory(task: Task, case: Case, entry: Entry, outcome: Callable[[int], Answer]) -> bool:
    """Whether an incorrect answer is incorrect because of its memory.

    If so, the judge names the answer's mistake when memory is refused, and doesn't otherwise. An
    answer not named after a mistake must have no other reason to lose points.
    """
    refused = outcome(case.budget.bytes if case.budget else 0)
    is_refused = refused.memory == "refused"
    if not is_refused:
        refused = outcome(0)
        if refused.memory != "refused":
            return False
    against = judge_answer(task, case, refused)
    for_all_else = judge_answer(task, case, replace(refused, memory="within"))
    if entry.mistake is None:
        return is_refused and all(finding.ok for finding in for_all_else.values())
    elsewhere = sum(points for part, points in task.parts.items() if part not in case.parts)
    if not is_refused and not 0 < elsewhere <= entry.earns:
        return False  # it may lose points for another reason, and take little memory in this case
    named = any(entry.mistake in finding.mistakes for finding in against.values())
    return named and not any(entry.mistake in f.mistakes for f in for_all_else.values())


def margins(needs: Iterable[Need]) -> dict[str, dict[str, float | None]]:
    """Return, by task, the least memory that correct answers spare, and mistakes' excess."""
    by_task: dict[str, list[Need]] = {}
    for need in needs:
        by_task.setdefault(need.task, []).append(need)
    return {
        task: {
            "budget_mib": of_task[0].budget_mib,
            "to_spare_mib": min((-n.beyond_mib for n in of_task if n.right), default=None),
            "over_mib": min((n.beyond_mib for n in of_task if not n.right), default=None),
        }
        for task, of_task in by_task.items()
    }
