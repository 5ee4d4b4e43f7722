"""The bank of answers, graded in this process: quick, and without a sandbox around it.

`tests/bank/<lab>/<task>/right_*.py` and `wrong_*.py` hold one solution cell each. The first line
of a file says what is particular about it; a wrong one may end it in `[earns 2]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from autograder.ban import banned_uses
from autograder.judge import could_not_judge, draw, judge, refuse
from autograder.student import LocalStudent
from autograder.submission import RunCell
from autograder.task import Lab, Task, Verdict

__all__ = ["BANK", "check_bank", "graded_bank"]

BANK = Path(__file__).parents[2] / "bank"
_SECRET = b"the bank's secret"


def graded_bank(
    lab: Lab, task: Task, bank: Path = BANK, secret: bytes = _SECRET
) -> Iterator[tuple[Path, Verdict]]:
    """Yield each file of the task's folder in the bank, with the verdict on it."""
    for file in sorted((bank / lab.name / task.name).glob("*.py")):
        yield file, _grade(lab, task, file, secret)


def check_bank(lab: Lab, task: Task, bank: Path = BANK, secret: bytes = _SECRET) -> None:
    """Assert that every answer of the task's folder is graded as its name and first line say.

    A right one loses nothing; a wrong one earns at most what it says. Where its name is that of a
    mistake, it is recognised as that and earns exactly what it says, for sampled classes take that
    for the truth. What needs a GPU is skipped without one, and so never passes.
    """
    if task.needs_gpu and not torch.cuda.is_available():
        pytest.skip(f"the answers to {task.id} are not run: they need a GPU, and there is none")
    graded = list(graded_bank(lab, task, bank, secret))
    assert sum(file.name.startswith("right_") for file, _ in graded) >= 3, "3 right ones at least"
    assert sum(file.name.startswith("wrong_") for file, _ in graded) >= 5, "5 wrong ones at least"
    complaints = [text for file, verdict in graded for text in _complaints(task, file, verdict)]
    assert not complaints, "\n".join(complaints)


def _grade(lab: Lab, task: Task, file: Path, secret: bytes) -> Verdict:
    source = file.read_text(encoding="utf-8")
    if used := banned_uses(task, [RunCell(0, source, "solution", task.id)], lab.allows):
        return refuse(task, used, lab.allows)
    if task.needs_gpu and not torch.cuda.is_available():
        return could_not_judge(task, "This exercise needs a GPU.", "needs_gpu")
    names: dict[str, object] = {}
    exec(compile(source, f"<{file.name}>", "exec"), names)
    student = LocalStudent(names)
    cases = draw(task, secret, file.stem, source.encode())
    try:
        answers = [
            student.run(task.probe_path, case.inputs, task.ask(case) if task.ask else None)
            for case in cases
        ]
    finally:
        _remove_hooks()
    return judge(task, cases, answers)


def _remove_hooks() -> None:
    """Take back what an answer left to autograd, which would change all that is measured later."""
    while torch._C._autograd._top_saved_tensors_default_hooks(False) is not None:
        torch._C._autograd._pop_saved_tensors_default_hooks()


def _complaints(task: Task, file: Path, verdict: Verdict) -> Iterator[str]:
    kind, _, name = file.stem.partition("_")
    got = f"earned {verdict.points:g} as {verdict.mistake}: {verdict.message}"
    if kind == "right":
        if verdict.status != "right":
            yield f"{file.name} is right, but {got}"
        return
    first_line = file.read_text(encoding="utf-8").partition("\n")[0]
    earns = re.search(r"\[earns ([\d.]+)\]", first_line)
    most = float(earns[1]) if earns else 0.0
    if verdict.status == "right" or verdict.points > most:
        yield f"{file.name} is wrong, but {got}"
    if name in task.mistakes and verdict.points < most:
        yield f"{file.name} says that it earns {most:g}, but {got}"
    if name in task.mistakes and verdict.mistake != name:
        yield f"{file.name} is not recognised: it {got}"
