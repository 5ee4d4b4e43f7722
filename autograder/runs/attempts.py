"""Grades every attempt that was received, and publishes the one that counts.

Each folder named in receipts is graded into its own `OUT/attempts/<folder>`. The attempt chosen by
the semester's rules is then copied into OUT's journal, with a note on when it arrived and what
lateness costs. Publishing starts from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.model.lateness import ON_TIME
from autograder.model.note import Note
from autograder.model.result import Result
from autograder.model.status import JUDGED
from autograder.model.submission import SubmissionKey
from autograder.rules.counting import counting_of
from autograder.rules.lateness import Attempt, attempt_that_counts, lateness, sentence
from autograder.rules.semester import Receipt, Semester
from autograder.runs.classroom import take
from autograder.runs.room import Classroom, Handed
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from autograder.store.roll import note_counted, note_taken, taken

__all__ = [
    "Round",
    "rounds",
    "settle",
    "settle_again",
]

_NO_RECEIPT = "There is no receipt for this submission, so it doesn't count as late."


@dataclass(frozen=True)
class Round:
    """The attempts of one folder."""

    #: The folder's name in the submissions' folder; empty for that folder itself.
    folder: str
    #: The settings that they are graded with.
    room: Classroom
    #: The attempts.
    handed: Sequence[Handed]


def rounds(room: Classroom, submitted: Path, semester: Semester) -> list[Round]:
    """Read all attempts at the lab; without receipts they are one round, graded into OUT.

    Raises ValueError if only some of the lab's receipts name a folder.
    """
    folders = semester.folders(room.lab)
    if not folders:
        return [Round("", room, take(room, submitted))]
    if folders[0] == "" and len(folders) > 1:
        raise ValueError(
            f"some receipts for {room.lab} name a folder and some don't; expected all or none"
        )
    rooms = [replace(room, out=room.out.attempt(folder)) for folder in folders]
    return [
        Round(folder, own, take(own, submitted / folder if folder else submitted))
        for folder, own in zip(folders, rooms, strict=True)
    ]


def settle(room: Classroom, graded: Sequence[Round], semester: Semester) -> list[str]:
    """Copy the attempts that count into OUT; return where receipts and submissions disagree.

    If the rules have changed, running it again applies the new ones.
    """
    if [r.room.out for r in graded] == [room.out]:
        return []
    receipts = {(r.student, r.folder): r for r in semester.receipts if r.lab == room.lab}
    there = {(student, r.folder): r for r in graded for student, _ in r.handed}
    problems = [
        f"{student}, {room.lab}: there is a receipt for {folder or 'it'}, but no submission."
        for student, folder in sorted(receipts.keys() - there.keys())
    ]
    problems += [
        f"{student}, {room.lab}: there is a submission in {folder or 'the folder'}, but no receipt."
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
    """Do as `settle` does, with the attempts that were read before, without reading submissions."""
    folders = semester.folders(room.lab)
    if not folders:
        return [
            f"{room.lab}: {room.out.attempts_folder} contains attempts, but no receipt says which "
            "attempt counts; restore the receipts, then repair again"
        ]
    graded = []
    for folder in folders:
        own = replace(room, out=room.out.attempt(folder))
        handed = [(key.student, Path()) for key in taken(own.out) if key.lab == room.lab]
        graded.append(Round(folder, own, handed))
    return settle(room, graded, semester)


def _settle_one(
    room: Classroom,
    student: str,
    own: Mapping[str, Round],
    receipts: Mapping[tuple[str, str], Receipt],
    semester: Semester,
) -> dict[str, Any]:
    """Make one attempt of `own` the student's, by the rules, and return which one and why."""
    key, counts = SubmissionKey(student, room.lab), counting_of(room.out, room.course)
    attempts = []
    for folder, one in own.items():
        result = Journal(one.room.out).verdicts(key)
        receipt = receipts.get((student, folder))
        if result is not None and receipt is not None:
            attempts.append(Attempt(receipt, _points(counts.count(result))))
    if attempts:
        receipt = attempt_that_counts(semester, attempts).receipt
        note, late = sentence(semester, receipt, len(attempts)), lateness(semester, receipt)
        folder, received = receipt.folder, receipt.received.isoformat()
    else:
        note, late, folder, received = _NO_RECEIPT, ON_TIME, max(own), ""
    _adopt(room.out, key, Journal(own[folder].room.out), note)
    off = {"percent_off": late.percent_off, "days_late": late.days}
    return {"folder": folder, "received": received, **off}


def _adopt(out: OutFolder, key: SubmissionKey, theirs: Journal, note: str) -> None:
    ours = Journal(out)
    old, new = ours.verdicts(key), theirs.verdicts(key)
    if new is None:
        return  # grading was interrupted before this attempt
    new = replace(new, notes=(*new.notes, Note("receipt", note)))
    same = ours.submission(key) == theirs.submission(key)
    if same and new == old:
        return
    out.drop_pages(key)
    ours.copy(key, theirs)
    ours.amend(new, theirs.terms(key) or {})


def _points(result: Result) -> float:
    return sum(v.points for v in result.verdicts if v.status in JUDGED)
