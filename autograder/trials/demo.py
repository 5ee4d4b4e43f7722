"""Grades a sampled class for real, and compares the grades with the known truth."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.base.course import Course
from autograder.content import find_lab, lab_names
from autograder.model.result import Result
from autograder.trials.sampled_class import ClassFolder, sample_class

__all__ = ["compare", "prepare", "verdict"]

Row = dict[str, str]
_KEY = ("student", "lab", "task")


def prepare(out: Path, students: int, seed: int, course: Course, *, has_gpu: bool) -> ClassFolder:
    """Sample a class over all labs into `out`/class; return its folder.

    Deletes anything that an earlier demo left in `out`. Raises FileExistsError if `out` holds more.
    """
    class_ = ClassFolder(out / "class")
    if out.exists() and any(out.iterdir()) and not class_.truth.is_file():
        raise FileExistsError(f"{out} contains other files; give a new folder for the demo's class")
    shutil.rmtree(out, ignore_errors=True)
    labs = [find_lab(name) for name in lab_names()]
    sample_class(labs, students, seed, class_.path, course.bank, course.releases, has_gpu=has_gpu)
    return class_


def compare(truth: Path, grades: Path) -> list[str]:
    """Return a sentence for each exercise that differs between two CSV files of grades."""
    given = {tuple(row[name] for name in _KEY): row for row in _rows(grades)}
    return [
        sentence
        for row in _rows(truth)
        for sentence in _differences(row, given.get(tuple(row[name] for name in _KEY)))
    ]


def verdict(results: Sequence[Result], students: int, differences: Sequence[str]) -> str:
    """Return the demo's last line: counts of graded and lost, and whether scores are true."""
    graded = sum(result.end == "graded" for result in results)
    scores = f"{len(differences)} scores differ from" if differences else "scores equal"
    return f"{graded} graded, {students - graded} lost, {scores} the truth"


def _rows(path: Path) -> Iterator[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _differences(true: Row, given: Row | None) -> Iterator[str]:
    name = "{student} {task}".format(**true)
    if given is None:
        yield f"{name} has no grade"
        return
    for column in ("score", "status", "mistake"):
        if given[column] != true[column]:
            yield f"{name}: {column} is {given[column]!r}, and the truth is {true[column]!r}"
