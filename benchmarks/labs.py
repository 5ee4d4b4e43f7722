"""Runs a lab's solution from its source, and grades its exercises with the grader's tasks.

Run as `python -m benchmarks.labs solutions/lab01_formats.py`. It needs neither nbgrader nor
Jupyter, so GPU exercises can be graded on any machine that has a GPU.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from autograder.content import find_task
from autograder.model.judge import draw, judge_safely
from autograder.sandbox.host.in_process import LocalStudent
from peakmem.labs.session import refusals_lifted

__all__ = ["cells", "main"]

_SCORE = re.compile(r'^score\("([\w-]+)", globals\(\)\)$', re.MULTILINE)


def cells(source: str) -> Iterator[tuple[str, str]]:
    """Yield the header and body of each code cell of a notebook in jupytext's percent format."""
    for part in re.split(r"^# %%", source, flags=re.MULTILINE)[1:]:
        header, _, body = part.partition("\n")
        if not header.startswith(" [markdown]"):
            yield header, body


def main(path: str) -> int:
    """Run one lab; print how many cells failed, and the points; return 1 if any failed."""
    os.environ["MPLBACKEND"] = "Agg"
    sys.path.insert(0, str(Path(path).parent))
    names: dict[str, Any] = {"__name__": "__main__"}
    failed, points, total = 0, 0.0, 0.0
    for header, body in cells(Path(path).read_text(encoding="utf-8")):
        if task := _SCORE.search(body):
            earned, possible = _grade(task[1], names)
            points, total = points + earned, total + possible
            continue
        try:
            exec(compile(body, f"{path}:{header[:60]}", "exec"), names)
        except Exception:
            failed += 1
            traceback.print_exc()
    print(f"{failed} cells failed; {points:g} of {total:g} points.")
    return int(failed > 0 or points < total)


def _grade(task_id: str, names: dict[str, Any]) -> tuple[float, float]:
    """Return an exercise's points and its maximum; 0 for a GPU exercise without a GPU."""
    with refusals_lifted():
        task = find_task(task_id)
        if task.needs_gpu and not _has_gpu():
            return 0.0, 0.0
        cases = draw(task, b"solutions", "", b"")
        student = LocalStudent(names)
        answers = [
            student.run(task.probe_path, case.inputs, task.ask(case) if task.ask else None)
            for case in cases
        ]
        verdict = judge_safely(task, cases, answers)
    print(f"{task_id}: {verdict.points:g} of {task.points:g}. {verdict.message}")
    return float(verdict.points), float(task.points)


def _has_gpu() -> bool:
    with suppress(ImportError):
        import torch

        return torch.cuda.is_available()
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
