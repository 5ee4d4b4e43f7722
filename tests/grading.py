"""Submissions for tests of the whole grader, and the real command that grades them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree
from typing import Any

from tests.files import csv_records

__all__ = [
    "LAB01",
    "LAB05",
    "REPOSITORY",
    "SEARCH",
    "Class",
    "cell_of",
    "code_cell",
    "command_environment",
    "course_copy",
    "grade_command",
    "in_words",
    "released",
    "solved",
]

REPOSITORY = Path(__file__).resolve().parent.parent
LAB01, LAB05 = "lab01_formats", "lab05_accumulation"
SEARCH = "lab05-largest_micro_batch"  # an exercise of lab 5, 4 points

Notebook = dict[str, Any]


def released(lab: str = LAB05) -> Notebook:
    """The notebook that students get."""
    return _read("labs", lab)


def solved(lab: str = LAB05) -> Notebook:
    """The release with every exercise solved by the instructor's solution, and a text answer."""
    answers = {cell["id"]: cell["source"] for cell in _read("solutions", lab)["cells"]}
    notebook = in_words(released(lab))
    for cell in notebook["cells"]:
        if cell["id"].endswith("-solution"):
            cell["source"] = answers[cell["id"]]
    return notebook


def in_words(notebook: Notebook, answer: str = "The gradients are averaged.") -> Notebook:
    """The notebook with this answer to each question that an instructor grades."""
    for cell in notebook["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("grade") and marks.get("solution"):
            cell["source"] = answer
    return notebook


def cell_of(notebook: Notebook, name: str) -> dict[str, Any]:
    """The cell of this id."""
    return next(cell for cell in notebook["cells"] if cell["id"] == name)


def code_cell(source: str, **metadata: Any) -> dict[str, Any]:
    cell = {"cell_type": "code", "metadata": metadata, "source": source}
    return cell | {"execution_count": None, "outputs": []}


def _read(folder: str, lab: str) -> Notebook:
    notebook: Notebook = json.loads((REPOSITORY / folder / lab / f"{lab}.ipynb").read_bytes())
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def course_copy(folder: Path) -> Path:
    """A course with the labs of this one and no secret yet."""
    for name in ("labs", "solutions"):
        copytree(REPOSITORY / name, folder / name)
    return folder


def grade_command(course: Path, lab: str, submitted: Path, out: Path, *more: str) -> list[str]:
    """The command line as an instructor types it."""
    return [
        *(sys.executable, "-m", "autograder", "--course", str(course), "grade", lab),
        *("--submitted", str(submitted), "--out", str(out), *more),
    ]


@dataclass
class Class:
    """A class of submissions below `folder`, the course that grades it, and the results."""

    folder: Path
    course: Path
    lab: str = LAB05

    @property
    def submitted(self) -> Path:
        return self.folder / "submitted"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def copied(self, folder: Path) -> Class:
        """This class with a copy of its files, to do with as a test likes."""
        copytree(self.folder, folder)
        return replace(self, folder=folder)

    def hand_in(self, student: str, notebook: Notebook | bytes) -> Path:
        """Write one submission, and return its path."""
        path = self.submitted / student / self.lab / f"{self.lab}.ipynb"
        path.parent.mkdir(parents=True)
        raw = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
        path.write_bytes(raw)
        return path

    def command(self, *more: str) -> list[str]:
        return grade_command(self.course, self.lab, self.submitted, self.out, *more)

    def grade(
        self, *more: str, environment: Mapping[str, str] | None = None, around: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end, inside the command `around`, if one is given."""
        return subprocess.run(
            [*around, *self.command(*more)],
            env={**command_environment(), **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
        )

    def row(self, student: str, task: str = SEARCH) -> dict[str, str]:
        """The one row of grades.csv on this exercise of this student."""
        (row,) = (r for r in self.rows() if (r["student"], r["task"]) == (student, task))
        return row

    def rows(self) -> list[dict[str, str]]:
        return csv_records(self.out / "grades.csv")

    def page(self, student: str) -> str:
        """The student's feedback."""
        return (self.out / "feedback" / student / f"{self.lab}.html").read_text(encoding="utf-8")


def command_environment() -> dict[str, str]:
    """The environment of a command that finds this repository's packages, installed or not."""
    paths = f"{REPOSITORY}{os.pathsep}{REPOSITORY / 'src'}"
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
