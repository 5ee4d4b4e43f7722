"""Grades every attempt that was received, and publishes the one that counts.

Each folder that receipts name is graded into an `OUT/attempts/<folder>` of its own. The attempt
that the semester's rules choose is then copied into OUT's journal, from which all that leaves is
made, with a note that says when it came and what being late costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.model.result import Result
from autograder.publish.export import JUDGED
from autograder.publish.pages import drop_pages
from autograder.rules.policy import Attempt, counting, percent_off, sentence
from autograder.rules.semester import Receipt, Semester
from autograder.rules.waivers import waive, waivers
from autograder.runs.classroom import Classroom, Handed, take
from autograder.store.journal import Journal
from autograder.store.roll import ATTEMPTS, note_counted, note_taken, taken

__all__ = [
    "Round",
    "rounds",
    "settle",
    "settle_again",
]

_NO_RECEIPT = "There is no receipt of when this came, so it does not count as late."


@dataclass(frozen=True)
class Round:
    """The attempts of one folder, and the class that they are graded as."""

    folder: str
    room: Classroom
    handed: Sequence[Handed]


def rounds(room: Classroom, submitted: Path, semester: Semester) -> list[Round]:
    """Take in all attempts at the lab; without receipts they are one round, graded into OUT."""
    folders = sorted({r.folder for r in semester.receipts if r.lab == room.lab})
    if not folders:
        return [Round("", room, take(room, submitted))]
    if folders[0] == "" and len(folders) > 1:
        raise ValueError(
            f"some receipts of {room.lab} name a folder and some do not; expected all or none"
        )
    rooms = [replace(room, out=room.out / ATTEMPTS / (f or "submitted")) for f in folders]
    return [
        Round(folder, own, take(own, submitted / folder if folder else submitted))
        for folder, own in zip(folders, rooms, strict=True)
    ]


def settle(room: Classroom, graded: Sequence[Round], semester: Semester) -> list[str]:
    """Make the attempts that count OUT's own; return what receipts and submissions disagree on.

    Run again after the rules have changed, it does what they say now.
    """
    if [r.room.out for r in graded] == [room.out]:
        return []
    receipts = {(r.student, r.folder): r for r in semester.receipts if r.lab == room.lab}
    there = {(student, r.folder): r for r in graded for student, _ in r.handed}
    problems = [
        f"{student}, {room.lab}: there is a receipt of {folder or 'it'}, but no submission"
        for student, folder in sorted(receipts.keys() - there.keys())
    ]
    problems += [
        f"{student}, {room.lab}: there is a submission in {folder or 'the folder'}, but no receipt"
        for student, folder in sorted(there.keys() - receipts.keys())
    ]
    note_taken(room.out, room.lab, {student for student, _ in there})
    chosen = {}
    for student in sorted({student for student, _ in there}):
        own = {folder: r for (name, folder), r in there.items() if name == student}
        chosen[student] = _settle_one(room, student, own, receipts, semester)
    note_counted(room.out, {room.lab: chosen})
    return problems


def settle_again(room: Classroom, semester: Semester) -> list[str]:
    """Do as `settle` does, with the attempts that were taken in before; no submission is read."""
    folders = sorted({r.folder for r in semester.receipts if r.lab == room.lab})
    if not folders:
        return [
            f"{room.lab}: {room.out / ATTEMPTS} holds attempts, but no receipt says which of them "
            "counts; put the receipts back, and repair again"
        ]
    graded = []
    for folder in folders:
        own = replace(room, out=room.out / ATTEMPTS / (folder or "submitted"))
        handed = [(student, Path()) for student, lab in taken(own.out) if lab == room.lab]
        graded.append(Round(folder, own, handed))
    return settle(room, graded, semester)


def _settle_one(
    room: Classroom,
    student: str,
    own: Mapping[str, Round],
    receipts: Mapping[tuple[str, str], Receipt],
    semester: Semester,
) -> dict[str, Any]:
    """Make the attempt of `own` that counts the student's, and say which it is."""
    given = waivers(room.out)
    attempts = []
    for folder, one in own.items():
        result = Journal(one.room.out).verdicts(room.lab, student)
        receipt = receipts.get((student, folder))
        if result is not None and receipt is not None:
            attempts.append(Attempt(receipt, _points(waive(result, given))))
    if attempts:
        receipt = counting(semester, attempts).receipt
        note, off = sentence(semester, receipt, len(attempts)), percent_off(semester, receipt)
        folder, received = receipt.folder, receipt.received.isoformat()
    else:
        note, off, folder, received = _NO_RECEIPT, 0.0, max(own), ""
    _adopt(room, student, Journal(own[folder].room.out), note)
    return {"folder": folder, "received": received, "percent_off": off}


def _adopt(room: Classroom, student: str, theirs: Journal, note: str) -> None:
    ours = Journal(room.out)
    old, new = ours.verdicts(room.lab, student), theirs.verdicts(room.lab, student)
    if new is None:
        return  # grading was cut off before it
    new = replace(new, notes=(*new.notes, note))
    same = ours.submission(room.lab, student) == theirs.submission(room.lab, student)
    if same and new == old:
        return
    drop_pages(new, room.out)
    ours.copy(room.lab, student, theirs)
    ours.amend(new, theirs.terms(room.lab, student) or {})


def _points(result: Result) -> float:
    return sum(v.points for v in result.verdicts if v.status in JUDGED)
