"""Tells who submitted, who is absent, and which attempt counts, for a results folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from autograder.model.lateness import Lateness
from autograder.model.submission import SubmissionKey
from autograder.store.out_folder import OutFolder
from autograder.store.small_files import COUNTED, TAKEN

__all__ = ["absent", "counted", "lateness", "note_counted", "note_taken", "taken"]


def taken(out: OutFolder) -> list[SubmissionKey]:
    """Return all submissions, of every lab, that were taken in."""
    return [SubmissionKey(student, lab) for student, lab in TAKEN.read(out)]


def note_taken(out: OutFolder, lab: str, students: Iterable[str]) -> None:
    """Record that these students' submissions of the lab, and no others, were taken in."""
    others = [key for key in taken(out) if key.lab != lab]
    TAKEN.write(out, sorted(others + [SubmissionKey(student, lab) for student in students]))


def absent(out: OutFolder, students: Iterable[str]) -> list[SubmissionKey]:
    """Return, by lab, the submissions that are missing from these students."""
    there = set(taken(out))
    labs, names = sorted({key.lab for key in there}), list(students)
    return [key for lab in labs for name in names if (key := SubmissionKey(name, lab)) not in there]


def counted(out: OutFolder) -> dict[str, dict[str, dict[str, Any]]]:
    """Return, by lab and student, the attempt that counts.

    It has `folder`, `received`, `percent_off` and, except in older folders, `days_late`.
    """
    return dict(COUNTED.read(out))


def lateness(out: OutFolder) -> dict[SubmissionKey, Lateness]:
    """Return how late each counting attempt is; empty without receipts."""
    return {
        SubmissionKey(student, lab): Lateness(chosen["percent_off"], chosen.get("days_late", 0))
        for lab, of_lab in counted(out).items()
        for student, chosen in of_lab.items()
    }


def note_counted(out: OutFolder, chosen: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Record the attempts that count for these labs; other labs' records stay."""
    COUNTED.write(out, {**counted(out), **chosen})
