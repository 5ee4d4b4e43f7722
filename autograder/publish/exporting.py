"""Writes OUT/export: tables, Canvas's file, all feedback, and how the class did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial as bound
from pathlib import Path
from typing import get_args

from autograder.base.course import Course
from autograder.model.result import Result
from autograder.notebooks.graded import solution_source
from autograder.notebooks.questions import questions_of
from autograder.publish import item_analysis, statistics, tables
from autograder.publish.final_grades import people, standings
from autograder.rules.counting import own_points
from autograder.store.journal import Journal
from autograder.store.out_folder import ExportName, OutFolder
from autograder.store.roll import taken

__all__ = ["Exported", "write_exports"]


@dataclass(frozen=True)
class Exported:
    """What an export contains."""

    #: Its folder.
    folder: Path
    #: Its files, by name.
    paths: Mapping[str, Path]
    #: The number of students.
    students: int
    #: The number of feedback pages.
    pages: int
    #: The cells of Canvas's table that aren't final, by lab.
    cells: Mapping[str, tables.Cells]

    def lines(self) -> Iterator[str]:
        """Yield the sentences about the export that an instructor reads."""
        for lab, cells in self.cells.items():
            for count, hold in (
                (cells.partial, "have the points so far"),
                (cells.empty, "are empty until graded manually"),
            ):
                if count:
                    yield f"{lab}: {count} of {self.students} Canvas cells {hold}"
        labs = sum(name.startswith("items_") for name in self.paths)
        yield (
            f"{self.folder}: students: {self.students}, feedback pages: {self.pages}, "
            f"labs: {labs}; what to change in each lab: items-*.html"
        )


def write_exports(
    out: OutFolder, course: Course, results: Sequence[Result], *, partial: bool
) -> Exported:
    """Write `out`/export from newly published results.

    With `partial`, Canvas's table has the points so far of students who wait for manual grading.
    """
    standing = standings(out)
    students = people(out, sorted({key.student for key in standing}))
    paths = {name: out.export(name) for name in get_args(ExportName)}
    tables.write_students(standing, students, paths["students"])
    cells = tables.write_canvas(standing, students, paths["canvas"], partial=partial)
    # The page of a submission that is gone stays in OUT, but leaves with no other.
    current = [out.feedback_page(key) for key in taken(out)]
    pages = tables.write_feedback_zip(current, paths["feedback_zip"])
    results = [own_points(result, course) for result in results]
    labs = statistics.statistics_of(results)
    statistics.write_table(labs, paths["statistics"])
    questions = questions_of(labs, course)
    for lab, tasks in labs.items():
        paths[f"statistics_{lab}"] = out.lab_statistics(lab)
        statistics.write_picture(lab, tasks, paths[f"statistics_{lab}"])
        paths[f"items_{lab}"] = out.lab_items(lab)
        analysis = item_analysis.analyse(lab, results, bound(_code, Journal(out)))
        titles = {question.id: question.title for question in questions[lab]}
        item_analysis.write_page(analysis, lab, paths[f"items_{lab}"], titles)
    return Exported(out.exports, paths, len(students), pages, cells)


def _code(journal: Journal, result: Result, task: str) -> str:
    """The student's code for a task, which only the full journal entry has."""
    whole = journal.read(result.key)
    return solution_source(whole.notebook, task) if whole else ""
