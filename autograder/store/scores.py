"""Reads all labs' scores and comments from nbgrader's database, by submission and cell."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from sqlalchemy import and_, func, or_, select, true
from sqlalchemy.orm import Session

from autograder.model.manual_grades import ManualGrades
from autograder.model.submission import SubmissionKey
from autograder.notebooks.binder import full_name
from autograder.store import tables as api
from autograder.store.gradebook_file import has_tables, open_session
from autograder.store.out_folder import OutFolder

__all__ = [
    "COMMENTED",
    "GRADED_BY_HAND",
    "final_scores",
    "has_cells",
    "manual_grades",
    "rows_of",
    "scores_in",
    "second_looks",
]

#: The grades with manual points or extra credit.
GRADED_BY_HAND = or_(
    api.Grade.manual_score.is_not(None), func.coalesce(api.Grade.extra_credit, 0.0) != 0.0
)
#: The comments with a manual text.
COMMENTED = func.coalesce(api.Comment.manual_comment, "") != ""


def has_cells(out: OutFolder, lab: str) -> bool:
    """Tell whether nbgrader has recorded the assignment `lab` in `out`/gradebook.db."""
    if not has_tables(out):
        return False
    query = select(api.Assignment.id).where(api.Assignment.name == lab)
    with open_session(out) as session:
        return session.scalar(query) is not None


def scores_in(out: OutFolder) -> dict[SubmissionKey, dict[str, float | None]]:
    """Return the grader's scores in `out`/gradebook.db: submission -> grade cell -> score.

    None means that manual grading is due. Manual scores are ignored.
    """
    return _values(out, api.Grade, api.Grade.auto_score)


def final_scores(out: OutFolder) -> dict[SubmissionKey, dict[str, float | None]]:
    """Return the scores as `scores_in` does, but prefer manual scores to the grader's.

    Extra credit is included.
    """
    return _values(out, api.Grade, _final())


def manual_grades(out: OutFolder) -> dict[SubmissionKey, ManualGrades]:
    """Return the manual grades in `out`/gradebook.db; submissions without any are left out.

    If a cell has manual points or extra credit, its points are the final ones.
    """
    points = _values(out, api.Grade, _final(), GRADED_BY_HAND)
    comments = _values(out, api.Comment, api.Comment.manual_comment, COMMENTED)
    return {
        key: ManualGrades(points.get(key, {}), comments.get(key, {}))
        for key in points.keys() | comments.keys()
    }


def second_looks(out: OutFolder) -> dict[SubmissionKey, dict[str, float | None]]:
    """Return the manual points in `out`/gradebook.db that are flagged for a second look."""
    up = and_(api.Grade.manual_score.is_not(None), api.Grade.needs_manual_grade)
    return _values(out, api.Grade, api.Grade.manual_score, up)


def _final() -> Any:
    """A grade's final points: manual, or else automatic, plus extra credit."""
    given = func.coalesce(api.Grade.manual_score, api.Grade.auto_score)
    return given + func.coalesce(api.Grade.extra_credit, 0.0)


def _values(
    out: OutFolder, table: Any, value: Any, where: Any = None
) -> dict[SubmissionKey, dict[str, Any]]:
    """One value of the rows of `table`, by submission and cell; see `rows_of`."""
    values: dict[SubmissionKey, dict[str, Any]] = defaultdict(dict)
    if not has_tables(out):
        return values
    with open_session(out) as session:
        for key, cell, held in rows_of(session, table, value, where=where):
            values[key][cell] = held
    return values


def rows_of(session: Session, table: Any, *columns: Any, where: Any = None) -> Iterator[Any]:
    """Yield each row's submission, cell name as `bind` gives it, and these columns.

    `table` is the table of grades or of comments; `where` selects rows, by default all.
    """
    submission, notebook = api.SubmittedAssignment, api.SubmittedNotebook
    names = (submission.student_id, api.Assignment.name, api.Notebook.name, api.BaseCell.name)
    query = (
        select(*names, *columns)
        .select_from(submission)
        .join(api.Assignment, api.Assignment.id == submission.assignment_id)
        .join(notebook, notebook.assignment_id == submission.id)
        .join(api.Notebook, api.Notebook.id == notebook.notebook_id)
        .join(table, table.notebook_id == notebook.id)
        .join(api.BaseCell, api.BaseCell.id == table.cell_id)
        .where(true() if where is None else where)
    )
    counted = (
        select(api.Assignment.name, func.count(api.Notebook.id))
        .join(api.Notebook, api.Notebook.assignment_id == api.Assignment.id)
        .group_by(api.Assignment.id)
    )
    counts: dict[str, int] = dict(session.execute(counted).all())
    by_parts = query.execution_options(yield_per=1000)  # a large class has many rows
    for student, lab, name, cell, *held in session.execute(by_parts):
        task = sys.intern(full_name(name, cell, alone=counts[lab] == 1))
        yield SubmissionKey(sys.intern(student), sys.intern(lab)), task, *held
