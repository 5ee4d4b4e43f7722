"""Writes each submission's grades and comments for one lab into nbgrader's database.

Rows are written in bulk, in one transaction per call. Manual grades are never overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from autograder.model.submission import SubmissionKey
from autograder.notebooks.binder import full_name
from autograder.store import tables as api
from autograder.store.gradebook_file import open_session
from autograder.store.out_folder import OutFolder

__all__ = ["Entries", "put_up_again", "save_entries", "save_max_points", "save_students"]

_INERT = str.maketrans("<>&\"'`", "\u2039\u203a\uff06\u201d\u2019\u2018")
#: The column that the grader writes; the others belong to the instructor.
_OF_THE_GRADER = {api.Grade: "auto_score", api.Comment: "auto_comment"}
Places = dict[tuple[str, str], str]  # (student, notebook) -> submitted notebook


@dataclass(frozen=True)
class Entries:
    """One submission's rows in the gradebook, by the cell names that `bind` gives."""

    #: The automatic score, and whether the cell waits for manual grading.
    grades: Mapping[str, tuple[float | None, bool]]
    #: The grader's comment.
    comments: Mapping[str, str | None]


def save_entries(out: OutFolder, lab: str, entries: Mapping[str, Entries]) -> None:
    """Write `entries`, by student, into `out`/gradebook.db; unchanged rows aren't touched.

    Manual scores and comments stay. If the grader's score under a manual one changes, the grade is
    flagged for a second look.
    """
    with open_session(out) as session:
        notebooks = _notebooks(session, lab)
        places = _submissions(session, lab, notebooks, list(entries))
        grades = {
            (student, name): {"auto_score": score, "needs_manual_grade": is_manual}
            for student, entry in entries.items()
            for name, (score, is_manual) in entry.grades.items()
        }
        comments = {
            (student, name): {"auto_comment": text}
            for student, entry in entries.items()
            for name, text in entry.comments.items()
        }
        graded = _cells(session, notebooks, (api.GradeCell, api.TaskCell))
        commented = _cells(session, notebooks, (api.SolutionCell, api.TaskCell))
        _save(session, api.Grade, grades, places, graded)
        _save(session, api.Comment, comments, places, commented)


def save_max_points(out: OutFolder, lab: str, points: Mapping[str, float]) -> None:
    """Set how many points each cell, by its name, adds to the lab's maximum."""
    with open_session(out) as session:
        cells = _cells(session, _notebooks(session, lab), (api.GradeCell, api.TaskCell))
        for name, most in points.items():
            for kind in (api.GradeCell, api.TaskCell):
                session.execute(
                    update(kind).where(kind.id == cells[name][1]).values(max_score=most)
                )


def put_up_again(out: OutFolder, submissions: Iterable[SubmissionKey]) -> None:
    """Flag all manual points of these submissions for a second look."""
    submission, submitted = api.SubmittedAssignment, api.SubmittedNotebook
    with open_session(out) as session:
        for student, lab in submissions:
            theirs = (
                select(submitted.id)
                .join(submission, submission.id == submitted.assignment_id)
                .join(api.Assignment, api.Assignment.id == submission.assignment_id)
                .where(submission.student_id == student, api.Assignment.name == lab)
            )
            session.execute(
                update(api.Grade)
                .where(api.Grade.notebook_id.in_(theirs), api.Grade.manual_score.is_not(None))
                .values(needs_manual_grade=True)
                .execution_options(synchronize_session=False)
            )


def save_students(out: OutFolder, students: Iterable[Mapping[str, str]]) -> None:
    """Write names and addresses into `out`/gradebook.db, for Formgrader to show.

    Formgrader shows the id of a student without a name. Look-alikes replace HTML's special
    characters, because Formgrader would run HTML in a name.
    """
    rows = [
        {name: text if name == "id" else text.translate(_INERT) for name, text in row.items()}
        for row in students
    ]
    rows = [{**row, "last_name": row["last_name"] or row["id"]} for row in rows]
    with open_session(out) as session:
        known = set(session.scalars(select(api.Student.id)))
        _insert(session, api.Student, [row for row in rows if row["id"] not in known])
        changed = [row for row in rows if row["id"] in known]
        if changed:
            session.execute(update(api.Student), changed)
        nameless = api.Student.last_name.is_(None)
        session.execute(
            update(api.Student).where(nameless).values(last_name=api.Student.id, first_name="")
        )


def _notebooks(session: Session, lab: str) -> dict[str, str]:
    """The ids of an assignment's notebooks by name."""
    query = (
        select(api.Notebook.name, api.Notebook.id)
        .join(api.Assignment, api.Notebook.assignment_id == api.Assignment.id)
        .where(api.Assignment.name == lab)
    )
    return dict(session.execute(query).all())


def _submissions(
    session: Session, lab: str, notebooks: Mapping[str, str], students: Sequence[str]
) -> Places:
    """The ids of the students' submitted notebooks; missing rows are added."""
    known = set(session.scalars(select(api.Student.id).where(api.Student.id.in_(students))))
    _insert(session, api.Student, [{"id": s} for s in students if s not in known])
    assignment = session.scalar(select(api.Assignment.id).where(api.Assignment.name == lab))
    submission, submitted = api.SubmittedAssignment, api.SubmittedNotebook
    ours = (submission.assignment_id == assignment, submission.student_id.in_(students))
    query = select(submission.student_id, submission.id).where(*ours)
    whole: dict[str, str] = dict(session.execute(query).all())
    new = {student: api.new_uuid() for student in students if student not in whole}
    _insert(
        session,
        submission,
        [{"id": i, "assignment_id": assignment, "student_id": s} for s, i in new.items()],
    )
    placed = select(submission.student_id, submitted.notebook_id, submitted.id)
    rows = session.execute(placed.join(submitted).where(*ours))
    places: Places = {(student, notebook): place for student, notebook, place in rows}
    added = {
        (student, notebook): api.new_uuid()
        for student in students
        for notebook in notebooks.values()
        if (student, notebook) not in places
    }
    whole |= new
    _insert(
        session,
        submitted,
        [
            {"id": place, "assignment_id": whole[student], "notebook_id": notebook}
            for (student, notebook), place in added.items()
        ],
    )
    return places | added


def _save(
    session: Session,
    table: Any,
    values: Mapping[tuple[str, str], Mapping[str, Any]],
    places: Places,
    cells: Mapping[str, tuple[str, str]],
) -> None:
    """Write a row's values, by student and cell name, if the grader's own among them is new."""
    column = _OF_THE_GRADER[table]
    query = select(*table.__table__.columns).where(table.notebook_id.in_(places.values()))
    old = {(row.notebook_id, row.cell_id): row for row in session.execute(query)}
    added, changed = [], []
    for (student, name), new in values.items():
        notebook, cell = cells[name]
        place = places[student, notebook]
        row = old.get((place, cell))
        if row is None:
            added.append({"notebook_id": place, "cell_id": cell, **new})
        elif new[column] != getattr(row, column):
            by_hand = table is api.Grade and row.manual_score is not None
            changed.append(
                {"id": row.id, **new, **({"needs_manual_grade": True} if by_hand else {})}
            )
    _insert(session, table, added)
    if changed:
        session.execute(update(table), changed)


def _cells(
    session: Session, notebooks: Mapping[str, str], kinds: Sequence[Any]
) -> dict[str, tuple[str, str]]:
    """The notebook and the id of each cell of these kinds, by the name that `bind` gives."""
    names = {notebook: name for name, notebook in notebooks.items()}
    query = select(api.BaseCell.notebook_id, api.BaseCell.name, api.BaseCell.id).where(
        api.BaseCell.notebook_id.in_(names),
        api.BaseCell.type.in_([kind.__name__ for kind in kinds]),
    )
    alone = len(names) == 1
    return {
        full_name(names[notebook], name, alone=alone): (notebook, cell)
        for notebook, name, cell in session.execute(query)
    }


def _insert(session: Session, model: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        session.execute(insert(model), list(rows))
