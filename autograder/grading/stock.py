"""Runs a task under nbgrader's own `autograde`, in the kernel that ran the student's code.

Nothing is isolated there, so a determined student can forge the score. Use `autograder grade` for
work that counts. Stock gives honest work the same points, so that nbgrader's other tools
(formgrader, Validate, a course that has only them) keep working.

Stock can't report that it didn't judge. Every grade cell counts in its total, so an exercise that
needs a GPU scores 0 on a machine without one, where `autograder grade` leaves its points out.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.model.banned_uses import banned_uses, uses_beside
from autograder.model.judge import could_not_judge, draw, judge_safely, refuse
from autograder.model.state import is_written
from autograder.model.submission import RunCell
from autograder.model.task import Task, Verdict
from autograder.sandbox.host.in_process import LocalStudent
from peakmem.labs.session import refusals_lifted

__all__ = ["score"]

_SHOWN = 2000  # characters of stderr


def score(task_id: str, names: Mapping[str, Any]) -> float:
    """Grade one task on a notebook's names, print the message, and return the points.

    A grade cell ends with `score("lab01-decode_fp32", globals())`. nbgrader takes a plain float on
    the last line, from 0.0 to the cell's maximum, as the points; anything on stderr means 0, and no
    output means full marks. So this always returns a Python float, and prints on stdout what the
    student's code writes to stderr.

    The cases are the same for everyone and drawn without a secret, because they are in the
    student's kernel. Students' mistakes never raise an exception. Raises ValueError if the task is
    unknown.
    """
    with _stderr_on_stdout():
        with refusals_lifted():  # judges may import what the notebook may not
            from autograder.content import find_task, lab_of

            task, lab = find_task(task_id), lab_of(task_id)
        verdict = _verdict(task, names, lab.allows)
    points = float(verdict.points)
    print(f"{points:g} of {task.points:g} points. {verdict.message}")
    return points


def _verdict(task: Task, names: Mapping[str, Any], allows: Sequence[str] = ()) -> Verdict:
    try:
        cells = _cells(task, names)
        uses = banned_uses(task, cells, allows) or uses_beside(task, cells, allows)
    except RecursionError as error:
        return could_not_judge(task, f"Not judged: {error}.")
    if uses:
        return refuse(task, uses, allows)
    if task.needs_gpu and not _has_gpu():
        return could_not_judge(
            task,
            "Not judged: this exercise needs a GPU, and this machine has none. nbgrader counts it "
            "as 0; `autograder grade` excludes its points from the total.",
            "needs_gpu",
        )
    cases = draw(task, b"stock", "", b"")
    student, written = LocalStudent(names), is_written(task, cells)
    answers = [
        student.run(task.probe_path, case.inputs, task.ask(case) if task.ask else None)
        for case in cases
    ]
    return judge_safely(task, cases, [replace(one, is_written=written) for one in answers])


def _cells(task: Task, names: Mapping[str, Any]) -> list[RunCell]:
    """The cells run so far. Which exercise a student's cell answers isn't known here."""
    given = _given_cells(task.id.partition("-")[0])
    return [
        RunCell(place, source, "given" if source.strip() in given else "own")
        for place, source in enumerate(names.get("In", ()))
    ]


def _given_cells(number: str) -> set[str]:
    """The lab's own cells, as the kernel's history records them.

    nbgrader runs a notebook in its folder, where its locked cells have been restored. The notebook
    is read as plain JSON, since importing nbformat or nbgrader would take longer than most
    exercises.
    """
    from IPython.core.inputtransformer2 import TransformerManager

    cells = [
        cell
        for path in Path().glob(f"{number}_*.ipynb")
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    ]
    return {
        TransformerManager().transform_cell("".join(cell["source"])).strip()
        for cell in cells
        if cell["metadata"].get("nbgrader", {}).get("locked")
        or "demo" in cell["metadata"].get("tags", ())
    }


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


@contextmanager
def _stderr_on_stdout() -> Iterator[None]:
    """Print on stdout, at the end, everything written to stderr by Python or below it."""
    with (
        tempfile.TemporaryFile() as caught,
        os.fdopen(os.dup(caught.fileno()), "w", buffering=1, errors="backslashreplace") as text,
    ):
        outer, number = sys.stderr, os.dup(2)
        outer.flush()
        os.dup2(caught.fileno(), 2)
        # A logging handler from an earlier cell holds the kernel's own stream, not sys.stderr.
        with suppress(AttributeError):
            outer.write = text.write  # type: ignore[method-assign]
        try:
            with redirect_stderr(text):
                yield
        finally:
            with suppress(AttributeError):
                del outer.write
            os.dup2(number, 2)
            os.close(number)
            text.close()
            caught.seek(0)
            written = caught.read().decode(errors="backslashreplace")
    if written:
        print(f"Written to stderr meanwhile:\n{written[:_SHOWN].rstrip()}")
