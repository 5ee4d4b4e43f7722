"""Declares nbgrader's database as tables, because importing nbgrader's own takes 1.5 seconds.

A test compares these with the tables that the installed nbgrader creates, and `VERSION` with the
version that it records.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Boolean, DateTime, Float, ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, mapped_column
from sqlalchemy.orm import Mapped as M

# The tables themselves are used by name, as `tables.Grade`.
__all__ = ["VERSION", "Base", "Version", "new_uuid"]

VERSION = "e43177bfe90b"  # alembic's name for this layout of the tables


def new_uuid() -> str:
    """Return a new id of nbgrader's form."""
    return uuid4().hex


class Base(DeclarativeBase):
    """All tables of a gradebook except alembic's."""


class Version(DeclarativeBase):
    """Alembic's table, separate as in nbgrader."""


def _id() -> M[str]:
    return mapped_column(String(32), primary_key=True, default=new_uuid)


def _column(kind: Any, *rest: Any, null: bool = True, **more: Any) -> M[Any]:
    return mapped_column(kind, *rest, nullable=null, **more)


def _of(place: str, length: int = 32, *, null: bool = True) -> M[Any]:
    return mapped_column(String(length), ForeignKey(place), nullable=null)


class AlembicVersion(Version):
    __tablename__ = "alembic_version"
    version_num: M[str] = mapped_column(String(32), primary_key=True)


class Course(Base):
    __tablename__ = "course"
    __table_args__ = (UniqueConstraint("id"),)
    id: M[str] = mapped_column(String(128), primary_key=True)


class Student(Base):
    __tablename__ = "student"
    id: M[str] = mapped_column(String(128), primary_key=True)
    first_name: M[str | None] = _column(String(128))
    last_name: M[str | None] = _column(String(128))
    email: M[str | None] = _column(String(128))
    lms_user_id: M[str | None] = _column(String(128))


class Assignment(Base):
    __tablename__ = "assignment"
    __table_args__ = (UniqueConstraint("name"),)
    id: M[str] = _id()
    name: M[str] = _column(String(128), null=False)
    duedate: M[datetime | None] = _column(DateTime)
    course_id: M[str] = _of("course.id", 128, null=False)


class Notebook(Base):
    __tablename__ = "notebook"
    __table_args__ = (UniqueConstraint("name", "assignment_id"),)
    id: M[str] = _id()
    name: M[str] = _column(String(128), null=False)
    assignment_id: M[str] = _of("assignment.id")
    kernelspec: M[str | None] = _column(String(1024))


class BaseCell(Base):
    __tablename__ = "base_cell"
    __table_args__ = (UniqueConstraint("name", "notebook_id", "type"),)
    id: M[str] = _id()
    name: M[str] = _column(String(128), null=False)
    notebook_id: M[str] = _of("notebook.id", null=False)
    type: M[str] = _column(String(50))


class GradeCell(Base):
    __tablename__ = "grade_cells"
    id: M[str] = mapped_column(String(32), ForeignKey("base_cell.id"), primary_key=True)
    max_score: M[float] = _column(Float, null=False)
    cell_type: M[str] = _column(String(8), null=False)


class SolutionCell(Base):
    __tablename__ = "solution_cells"
    id: M[str] = mapped_column(String(32), ForeignKey("base_cell.id"), primary_key=True)


class TaskCell(Base):
    __tablename__ = "task_cells"
    id: M[str] = mapped_column(String(32), ForeignKey("base_cell.id"), primary_key=True)
    max_score: M[float] = _column(Float, null=False)
    cell_type: M[str] = _column(String(8), null=False)


class SourceCell(Base):
    __tablename__ = "source_cell"
    __table_args__ = (UniqueConstraint("name", "notebook_id"),)
    id: M[str] = _id()
    name: M[str] = _column(String(128), null=False)
    cell_type: M[str] = _column(String(8), null=False)
    locked: M[bool] = _column(Boolean, null=False, default=False)
    source: M[str | None] = _column(Text)
    checksum: M[str | None] = _column(String(128))
    notebook_id: M[str] = _of("notebook.id")


class SubmittedAssignment(Base):
    __tablename__ = "submitted_assignment"
    __table_args__ = (UniqueConstraint("assignment_id", "student_id"),)
    id: M[str] = _id()
    assignment_id: M[str] = _of("assignment.id")
    student_id: M[str] = _of("student.id", 128)
    timestamp: M[datetime | None] = _column(DateTime)
    extension: M[Any] = _column(DateTime)


class SubmittedNotebook(Base):
    __tablename__ = "submitted_notebook"
    __table_args__ = (UniqueConstraint("notebook_id", "assignment_id"),)
    id: M[str] = _id()
    assignment_id: M[str] = _of("submitted_assignment.id")
    notebook_id: M[str] = _of("notebook.id")
    flagged: M[bool | None] = _column(Boolean, default=False)
    late_submission_penalty: M[float | None] = _column(Float)


class Grade(Base):
    __tablename__ = "grade"
    __table_args__ = (UniqueConstraint("cell_id", "notebook_id"),)
    id: M[str] = _id()
    notebook_id: M[str] = _of("submitted_notebook.id")
    cell_id: M[str] = _of("base_cell.id")
    auto_score: M[float | None] = _column(Float)
    manual_score: M[float | None] = _column(Float)
    extra_credit: M[float | None] = _column(Float)
    needs_manual_grade: M[bool] = _column(Boolean, null=False, default=True)


class Comment(Base):
    __tablename__ = "comment"
    __table_args__ = (UniqueConstraint("cell_id", "notebook_id"),)
    id: M[str] = _id()
    notebook_id: M[str] = _of("submitted_notebook.id")
    cell_id: M[str] = _of("base_cell.id")
    auto_comment: M[str | None] = _column(Text)
    manual_comment: M[str | None] = _column(Text)
