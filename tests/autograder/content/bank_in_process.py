"""The answer bank, graded in this process: fast, without a sandbox."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from autograder.model.banned_uses import banned_uses, uses_beside
from autograder.model.judge import could_not_judge, draw, judge, refuse
from autograder.model.submission import RunCell
from autograder.model.task import Lab, Task, Verdict
from autograder.sandbox.host.in_process import LocalStudent
from autograder.trials.answer_bank import read_bank
from autograder.trials.entry import Entry
from peakmem.probes.conversions import compiled
from tests.answers import BANK

__all__ = ["BANK", "check_bank", "graded_bank"]

_SECRET = b"the bank's secret"


def graded_bank(
    lab: Lab, task: Task, bank: Path = BANK, secret: bytes = _SECRET, kind: str = ""
) -> Iterator[tuple[Entry, Verdict]]:
    """Yield each answer to the task in the bank, or each of one kind, with the verdict on it."""
    for entry in read_bank(bank, lab):
        if entry.task == task.id and kind in ("", entry.kind):
            yield entry, _grade(lab, task, entry, secret)


def check_bank(lab: Lab, task: Task, bank: Path = BANK, secret: bytes = _SECRET) -> None:
    """Assert that every answer to the task is graded as its heading and docstring say.

    A right one loses nothing; a wrong one earns at most what it says. Where its name is that of a
    mistake, it is recognised as that and earns exactly what it says, for sampled classes take that
    for the truth. What needs a GPU is skipped without one, and so never passes.
    """
    if task.needs_gpu and not torch.cuda.is_available():
        pytest.skip(f"the answers to {task.id} are not run: they need a GPU, and there is none")
    graded = list(graded_bank(lab, task, bank, secret))
    assert sum(entry.kind == "right" for entry, _ in graded) >= 3, "3 right ones at least"
    assert sum(entry.kind == "wrong" for entry, _ in graded) >= 5, "5 wrong ones at least"
    complaints = [text for entry, verdict in graded for text in _complaints(entry, verdict)]
    assert not complaints, "\n".join(complaints)


def _grade(lab: Lab, task: Task, entry: Entry, secret: bytes) -> Verdict:
    source = entry.source
    cells = [RunCell(0, source, "solution", task.id)]
    if used := banned_uses(task, cells, lab.allows) or uses_beside(task, cells, lab.allows):
        return refuse(task, used, lab.allows)
    if task.needs_gpu and not torch.cuda.is_available():
        return could_not_judge(task, "This exercise needs a GPU.", "needs_gpu")
    names: dict[str, object] = {}
    file = f"<{entry.label}>"
    exec(compiled(source, file) if task.ban.conversions else compile(source, file, "exec"), names)
    student = LocalStudent(names)
    cases = draw(task, secret, entry.label, source.encode())
    try:
        with warnings.catch_warnings(action="ignore"):  # as in grading, where none is an error
            answers = [
                student.run(task.probe_path, case.inputs, task.ask(case) if task.ask else None)
                for case in cases
            ]
    finally:
        _remove_hooks()
    return judge(task, cases, answers)


def _remove_hooks() -> None:
    """Remove an answer's leftovers in autograd, which would change later measurements."""
    while torch._C._autograd._top_saved_tensors_default_hooks(False) is not None:
        torch._C._autograd._pop_saved_tensors_default_hooks()


def _complaints(entry: Entry, verdict: Verdict) -> Iterator[str]:
    got = f"earned {verdict.points:g} as {verdict.mistake}: {verdict.message}"
    if entry.kind == "right":
        if verdict.status != "right":
            yield f"{entry.label} is right, but {got}"
        return
    if verdict.status == "right" or verdict.points > entry.earns:
        yield f"{entry.label} is wrong, but {got}"
    if entry.mistake and verdict.points < entry.earns:
        yield f"{entry.label} says that it earns {entry.earns:g}, but {got}"
    if entry.mistake and verdict.mistake != entry.mistake:
        yield f"{entry.label} is not recognised: it {got}"
