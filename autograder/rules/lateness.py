"""Decides which attempt counts and what lateness costs. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from autograder.base.plural import plural
from autograder.model.lateness import ON_TIME, Lateness
from autograder.rules.semester import Receipt, Semester

__all__ = ["Attempt", "attempt_that_counts", "days_late", "lateness", "sentence"]

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Attempt:
    """A student's attempt at a lab."""

    #: When it arrived, and in which folder.
    receipt: Receipt
    #: The points that it earned before any deduction.
    points: float


def days_late(received: datetime, due: datetime, grace: timedelta = timedelta(0)) -> int:
    """Return how many days have begun since `due`; 0 up to `grace` after it.

    >>> due = datetime.fromisoformat("2026-11-20T23:59:00+01:00")
    >>> days_late(due + timedelta(minutes=15), due, grace=timedelta(minutes=15))
    0
    >>> [days_late(due + timedelta(hours=hours), due) for hours in (1, 24, 25)]
    [1, 1, 2]
    """
    return 0 if received <= due + grace else -((due - received) // _DAY)


def lateness(semester: Semester, receipt: Receipt) -> Lateness:
    """Return how late this attempt is, and the cost."""
    due = semester.due_for(receipt.student, receipt.lab)
    if due is None:
        return ON_TIME
    late = semester.late
    days = days_late(receipt.received, due, late.grace)
    return Lateness(min(days * late.percent_per_day, late.most_percent), days)


def attempt_that_counts(semester: Semester, attempts: Sequence[Attempt]) -> Attempt:
    """Return the attempt of a student at a lab that counts.

    `last` is the one received last. `best` has the most points after the deduction for lateness; a
    tie goes to the later one. `on_time` is the last that wasn't late, or the last if all were late.
    """
    ordered = sorted(attempts, key=lambda a: (a.receipt.received, a.receipt.folder))
    if semester.attempts == "best":
        return max(reversed(ordered), key=lambda a: _left(semester, a))
    if semester.attempts == "on_time":
        in_time = [a for a in ordered if not _is_late(semester, a.receipt)]
        return (in_time or ordered)[-1]
    return ordered[-1]


def sentence(semester: Semester, receipt: Receipt, among: int) -> str:
    """Tell the student when this attempt arrived, if it was late, and which of several it is."""
    due = semester.due_for(receipt.student, receipt.lab)
    late = lateness(semester, receipt)
    said = f"Received {receipt.received:%Y-%m-%d %H:%M} (UTC{receipt.received:%z})"
    if late.days:
        days = plural(late.days, "day")
        said += f", {days} late, so {late.percent_off:g}% of the points are taken off"
    elif due is not None:
        said += ", on time"
    if among == 1:
        return f"{said}."
    rule = "last" if late.days and semester.attempts == "on_time" else _RULES[semester.attempts]
    return f"{said}. It is the {rule} of {among} attempts, and the one that counts."


_RULES = {"last": "last", "best": "best", "on_time": "last on-time one"}


def _left(semester: Semester, attempt: Attempt) -> float:
    return lateness(semester, attempt.receipt).left_of(attempt.points)


def _is_late(semester: Semester, receipt: Receipt) -> bool:
    return lateness(semester, receipt).days > 0
