"""Rows of one lab in nbgrader's database: its cells, and each submission's grades and comments.

Cells are recorded by nbgrader's own code. Submissions are written in bulk, in one transaction a
call, and what people entered in formgrader is never written over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import nbgrader
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from nbgrader import api
from nbgrader.preprocessors import SaveCells
from sqlalchemy import Connection, create_engine, event, func, insert, select, update
from sqlalchemy.orm import Session

__all__ = [
    "Entries",
    "final_scores",
    "save_cells",
    "save_entries",
    "save_students",
    "scores_in",
]

_INERT = str.maketrans("<>&\"'`", "\u2039\u203a\uff06\u201d\u2019\u2018")
_WAIT_SECONDS = 60  # for another writer, such as a person in formgrader


@dataclass(frozen=True)
class Entries:
    """What one submission has in the gradebook, by the cell's name.

    `grades` holds (auto_score, needs a person), `comments` what the grader says.
    """

    grades: Mapping[str, tuple[float | None, bool]]
    comments: Mapping[str, str | None]


def save_cells(out: Path, lab: str, source: Mapping[str, Any]) -> None:
    """Have nbgrader record the assignment `lab` and its cells, as `generate_assignment` does.

    Raises ValueError where the gradebook holds submissions of the lab from when it had other cells.
    """
    _create(out)
    with api.Gradebook(_url(out)) as gradebook:
        if all(assignment.name != lab for assignment in gradebook.assignments):
            gradebook.add_assignment(lab)
    where = {"notebook": lab, "assignment": lab, "db_url": _url(out)}
    try:
        SaveCells().preprocess(nbformat.from_dict(source), {"nbgrader": where})
    except RuntimeError as error:
        raise ValueError(
            f"{out / 'gradebook.db'} holds submissions of {lab} from when the lab had other "
            "cells; grade into a new folder"
        ) from error


def save_entries(out: Path, lab: str, entries: Mapping[str, Entries]) -> None:
    """Write `entries`, by student, into `out`/gradebook.db; rows that are right stay as they are.

    A person's scores and comments stay. Where the score under a person's changes, the grade is
    put up for a second look.
    """
    query = (
        select(api.Notebook.id, api.Assignment.id)
        .join(api.Assignment, api.Notebook.assignment_id == api.Assignment.id)
        .where(api.Assignment.name == lab, api.Notebook.name == lab)
    )
    with _session(out) as session:
        notebook_id, assignment_id = session.execute(query).one()
        places = _submissions(session, notebook_id, assignment_id, list(entries))
        _save_grades(session, notebook_id, places, entries)
        _save_comments(session, notebook_id, places, entries)


def scores_in(out: Path) -> dict[tuple[str, str], dict[str, float | None]]:
    """Return the grader's scores in `out`/gradebook.db: (student, lab) -> grade cell -> score.

    None is a score that a person has to give. People's own scores are not looked at.
    """
    return _scores(out, api.Grade.auto_score)


def final_scores(out: Path) -> dict[tuple[str, str], dict[str, float | None]]:
    """Return the scores as `scores_in` does, with a person's in place of the grader's.

    Extra credit that a person gave is in them.
    """
    given = func.coalesce(api.Grade.manual_score, api.Grade.auto_score)
    return _scores(out, given + func.coalesce(api.Grade.extra_credit, 0.0))


def save_students(out: Path, students: Iterable[Mapping[str, str]]) -> None:
    """Write names and addresses into `out`/gradebook.db, for formgrader to show.

    A student without a name, on the roster or not, is shown by the id. Characters that HTML has a
    use for are replaced by others that look alike: formgrader runs what a name says.
    """
    rows = [
        {name: text if name == "id" else text.translate(_INERT) for name, text in row.items()}
        for row in students
    ]
    rows = [{**row, "last_name": row["last_name"] or row["id"]} for row in rows]
    with _session(out) as session:
        known = set(session.scalars(select(api.Student.id)))
        _insert(session, api.Student, [row for row in rows if row["id"] not in known])
        changed = [row for row in rows if row["id"] in known]
        if changed:
            session.execute(update(api.Student), changed)
        nameless = api.Student.last_name.is_(None)
        session.execute(
            update(api.Student).where(nameless).values(last_name=api.Student.id, first_name="")
        )


def _scores(out: Path, score: Any) -> dict[tuple[str, str], dict[str, float | None]]:
    scores: dict[tuple[str, str], dict[str, float | None]] = defaultdict(dict)
    if not (out / "gradebook.db").is_file():
        return scores
    submission, notebook = api.SubmittedAssignment, api.SubmittedNotebook
    query = (
        select(submission.student_id, api.Assignment.name, api.GradeCell.name, score)
        .select_from(submission)
        .join(api.Assignment, api.Assignment.id == submission.assignment_id)
        .join(notebook, notebook.assignment_id == submission.id)
        .join(api.Grade, api.Grade.notebook_id == notebook.id)
        .join(api.GradeCell, api.GradeCell.id == api.Grade.cell_id)
    )
    with _session(out) as session:
        for student, lab, cell, value in session.execute(query):
            scores[student, lab][cell] = value
    return scores


def _url(out: Path) -> str:
    return f"sqlite:///{out.resolve() / 'gradebook.db'}?timeout={_WAIT_SECONDS}"


def _create(out: Path) -> None:
    """Make the tables. nbgrader would run the command `alembic`, which may not be on the PATH."""
    script = ScriptDirectory(str(Path(nbgrader.__file__).parent / "alembic"))
    engine = create_engine(_url(out))
    try:
        with engine.begin() as connection:
            api.Base.metadata.create_all(connection)
            context = MigrationContext.configure(connection)
            if context.get_current_revision() is None:
                context.stamp(script, "head")
    finally:
        engine.dispose()


@contextmanager
def _session(out: Path) -> Iterator[Session]:
    """One transaction that nobody else writes into: the lock is taken at its start."""
    engine = create_engine(_url(out))

    @event.listens_for(engine, "connect")
    def _leave_begin_to_us(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    try:
        with Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


def _submissions(
    session: Session, notebook_id: str, assignment_id: str, students: Sequence[str]
) -> dict[str, str]:
    """The id of each student's submitted notebook; what is missing is added."""
    known = set(session.scalars(select(api.Student.id).where(api.Student.id.in_(students))))
    _insert(session, api.Student, [{"id": s} for s in students if s not in known])
    query = (
        select(api.SubmittedAssignment.student_id, api.SubmittedNotebook.id)
        .join(api.SubmittedNotebook)
        .where(api.SubmittedNotebook.notebook_id == notebook_id)
        .where(api.SubmittedAssignment.student_id.in_(students))
    )
    places: dict[str, str] = dict(session.execute(query).all())
    new = {s: (api.new_uuid(), api.new_uuid()) for s in students if s not in places}
    _insert(
        session,
        api.SubmittedAssignment,
        [
            {"id": submission, "assignment_id": assignment_id, "student_id": student}
            for student, (submission, _) in new.items()
        ],
    )
    _insert(
        session,
        api.SubmittedNotebook,
        [
            {"id": place, "assignment_id": submission, "notebook_id": notebook_id}
            for submission, place in new.values()
        ],
    )
    return places | {student: place for student, (_, place) in new.items()}


def _save_grades(
    session: Session, notebook_id: str, places: Mapping[str, str], entries: Mapping[str, Entries]
) -> None:
    grade = api.Grade
    cells = _cells(session, api.GradeCell, notebook_id)
    query = (
        select(grade.notebook_id, grade.cell_id, grade.id, grade.auto_score, grade.manual_score)
        .join(api.SubmittedNotebook, grade.notebook_id == api.SubmittedNotebook.id)
        .where(api.SubmittedNotebook.id.in_(places.values()))
    )
    old = {(place, cell): rest for place, cell, *rest in session.execute(query)}
    added, changed = [], []
    for student, entry in entries.items():
        for name, (score, needs_person) in entry.grades.items():
            key = (places[student], cells[name])
            values = {"auto_score": score, "needs_manual_grade": needs_person}
            if key not in old:
                added.append({"notebook_id": key[0], "cell_id": key[1], **values})
                continue
            grade_id, old_score, by_hand = old[key]
            if score != old_score:
                values["needs_manual_grade"] = needs_person or by_hand is not None
                changed.append({"id": grade_id, **values})
    _insert(session, grade, added)
    if changed:
        session.execute(update(grade), changed)


def _save_comments(
    session: Session, notebook_id: str, places: Mapping[str, str], entries: Mapping[str, Entries]
) -> None:
    comment = api.Comment
    cells = _cells(session, api.SolutionCell, notebook_id)
    query = (
        select(comment.notebook_id, comment.cell_id, comment.id, comment.auto_comment)
        .join(api.SubmittedNotebook, comment.notebook_id == api.SubmittedNotebook.id)
        .where(api.SubmittedNotebook.id.in_(places.values()))
    )
    old = {(place, cell): rest for place, cell, *rest in session.execute(query)}
    added, changed = [], []
    for student, entry in entries.items():
        for name, text in entry.comments.items():
            key = (places[student], cells[name])
            if key not in old:
                added.append({"notebook_id": key[0], "cell_id": key[1], "auto_comment": text})
            elif text != old[key][1]:
                changed.append({"id": old[key][0], "auto_comment": text})
    _insert(session, comment, added)
    if changed:
        session.execute(update(comment), changed)


def _cells(session: Session, kind: Any, notebook_id: str) -> dict[str, str]:
    query = select(kind.name, kind.id).where(kind.notebook_id == notebook_id)
    return dict(session.execute(query).all())


def _insert(session: Session, model: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        session.execute(insert(model), list(rows))
