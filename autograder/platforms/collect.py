"""Brings a learning platform's download into the layout that `autograder grade` reads.

Nothing is lost: files that can't be placed are kept beside the submissions, with the reason.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from autograder.base.csv_table import cell_text, csv_bytes
from autograder.base.files import drop_drafts, inside, locked, write_whole
from autograder.notebooks.intake import is_student_id
from autograder.platforms.downloads import Download, Sender, Upload
from autograder.rules.csv_input import header_of, rows
from autograder.rules.semester import Student

__all__ = ["ASIDE", "Collected", "collect", "write_receipts"]

#: The folder beside the submissions, for files that weren't placed and for the log.
ASIDE = "{}_set_aside"

_LOG = "collected.csv"
_LOG_HEADER = ("download", "file", "student", "lab", "sha256", "became")
_RECEIPTS_HEADER = ("student", "lab", "received")
_NAME_BYTES = 100  # kept of a name; a file system takes 255
_AGAIN = re.compile(r"(?P<stem>.+?)(?:-(?P<canvas>\d{1,3})| ?\((?P<browser>\d{1,3})\))?\.ipynb")


@dataclass
class Collected:
    """The outcome of collecting one download."""

    #: Students whose notebook was placed, and is new or has changed.
    placed: list[str] = field(default_factory=list)
    #: Students whose notebook was there already, byte for byte.
    unchanged: list[str] = field(default_factory=list)
    #: Students whose earlier notebook was moved aside for this one.
    replaced: list[str] = field(default_factory=list)
    #: Students whose notebook the platform marks as late.
    late: list[str] = field(default_factory=list)
    #: Students whose notebook isn't named after the lab, with its name.
    renamed: dict[str, str] = field(default_factory=dict)
    #: Files that were kept aside, and why.
    aside: dict[str, str] = field(default_factory=dict)
    #: The files among these whose sender isn't a known student on the roster.
    unknown: set[str] = field(default_factory=set)
    #: Files that couldn't be read, and why. They remain only in the download.
    unread: dict[str, str] = field(default_factory=dict)
    #: When each student's notebook was received, if the platform says so.
    received: dict[str, datetime] = field(default_factory=dict)


def collect(
    download: Download, name: str, lab: str, submitted: Path, roster: Sequence[Student]
) -> Collected:
    """Place each student's latest notebook as `submitted/<student>/<lab>/<lab>.ipynb`.

    `name` is the download's name in the log. Students are those of the roster; without a roster
    they get the ids that the platform knows. An earlier collected notebook that differs is moved
    aside, and so are files other than notebooks, and files from senders who aren't on the roster.
    """
    folder = submitted.with_name(ASIDE.format(submitted.name))
    work = _Collecting(name, lab, submitted, folder)
    by_student: defaultdict[str, defaultdict[Sender, list[Upload]]]
    by_student = defaultdict(lambda: defaultdict(list))
    students = _Students(roster)
    for upload in download.uploads:
        for sender in upload.senders or (Sender(),):
            student, problem = students.find(sender)
            if problem:
                work.keep(upload, "unknown", problem)
            else:
                by_student[student][sender].append(upload)
    for student, by_sender in sorted(by_student.items()):
        own = students.only(by_sender)
        for sender, uploads in by_sender.items():
            if sender != own:
                problem = f"{_told(sender)} isn't the only sender who may be {student}"
                for upload in uploads:
                    work.keep(upload, "unknown", problem)
        if own is not None:
            work.place(student, by_sender[own])
    for path in download.others:
        work.done.unread[path] = "it belongs to no submission"
    work.write_log()
    return work.done


def write_receipts(path: Path, lab: str, received: Mapping[str, datetime]) -> None:
    """Add the times to a file of receipts, replacing earlier ones of the same submissions.

    Raises ValueError if the existing file can't be read as receipts.
    """
    with locked(path.parent):
        columns, kept = list(_RECEIPTS_HEADER), []
        if path.is_file():
            columns = header_of(path)
            everything = rows(path, _RECEIPTS_HEADER, columns, key=())
            kept = [
                row
                for _, row in everything
                if (row["lab"], row["student"]) not in {(lab, student) for student in received}
            ]
        new = [
            {"student": student, "lab": lab, "received": time.isoformat()}
            for student, time in sorted(received.items())
        ]
        table = [[row.get(column, "") for column in columns] for row in [*kept, *new]]
        write_whole(path, csv_bytes([columns, *table]))


class _Students:
    """Identifies the student behind a platform's sender."""

    def __init__(self, roster: Sequence[Student]) -> None:
        self.roster = roster

    def find(self, sender: Sender) -> tuple[str, str]:
        """Return the student's id and no problem, or no id and the problem."""
        if not self.roster:
            name = sender.id or sender.email or sender.handle
            return (name, "") if is_student_id(name) else ("", f"{name!r} can't be a student's id")
        for matches in (self._by_number(sender), self._by_id(sender), self._by_name(sender)):
            if len(matches) == 1:
                return matches[0].id, ""
            if matches:
                names = ", ".join(student.id for student in matches)
                return "", f"{_told(sender)} may be any of {names}"
        return "", f"{_told(sender)} is not on the roster"

    def only(self, senders: Collection[Sender]) -> Sender | None:
        """Return the one sender who is the student that all of them may be; None if unclear.

        A name that matches only without its group's part is weaker than any other match, because on
        some platforms students choose the displayed name.
        """
        if len(senders) > 1:
            senders = [s for s in senders if self._by_number(s) or self._by_id(s) or self._full(s)]
        return next(iter(senders)) if len(senders) == 1 else None

    def _full(self, sender: Sender) -> bool:
        return any(_letters(sender.name) in _names(student) for student in self.roster)

    def _by_number(self, sender: Sender) -> list[Student]:
        return [s for s in self.roster if sender.number and s.lms_user_id == sender.number]

    def _by_id(self, sender: Sender) -> list[Student]:
        """Match by the id or the e-mail address, which Gradescope knows."""
        given = {text.casefold() for text in (sender.id, sender.email) if text}
        return [s for s in self.roster if {s.id.casefold(), s.email.casefold()} & given - {""}]

    def _by_name(self, sender: Sender) -> list[Student]:
        """Match by the name, in either order; Moodle puts a group's name before it."""
        full = _letters(sender.name)
        rest = _letters(sender.name.rpartition("-")[2])
        for given in dict.fromkeys((full, rest)):
            found = [s for s in self.roster if given and given in _names(s)]
            # A matching name proves nothing if the platform's number says it's another student.
            found = [s for s in found if not (s.lms_user_id and sender.number)]
            if found:
                return found
        return []


def _names(student: Student) -> set[str]:
    first, last = _letters(student.first_name), _letters(student.last_name)
    return {first + last, last + first} - {""}


def _letters(name: str) -> str:
    """A name as Canvas writes it, without capitals, accents, blanks and punctuation."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    return "".join(c for c in plain if c.isalnum())


def _told(sender: Sender) -> str:
    known = filter(None, (sender.handle or sender.name, sender.id, sender.email))
    return " ".join(known) or "a submission without a name"


def _why_kept(upload: Upload, notebooks: Sequence[Upload]) -> str:
    """Say why an upload isn't the one of the notebooks that is graded, the last."""
    if upload not in notebooks:
        return "not a notebook"
    if _stem(upload) == _stem(notebooks[-1]):
        return "an earlier attempt"
    return f"another notebook; {notebooks[-1].name} is graded"


def _stem(upload: Upload) -> str:
    """A notebook's own name, without the platform's or the browser's counter."""
    match = _AGAIN.fullmatch(upload.name)
    return match["stem"] if match else upload.name


class _Collecting:
    """Writes the files of one download, and records what happened to each."""

    def __init__(self, name: str, lab: str, submitted: Path, folder: Path) -> None:
        self.name, self.lab, self.submitted, self.folder = name, lab, submitted, folder
        self.done = Collected()
        self.log: list[tuple[str, ...]] = []

    def place(self, student: str, uploads: Sequence[Upload]) -> None:
        """Place the latest of a student's notebooks; keep the other files aside."""
        notebooks = sorted((u for u in uploads if u.name.endswith(".ipynb")), key=self._order)
        for upload in uploads:
            if upload not in notebooks[-1:]:
                self.keep(upload, student, _why_kept(upload, notebooks))
        if notebooks and (data := self._read(notebooks[-1])) is not None:
            self._put(student, notebooks[-1], data)

    def _order(self, upload: Upload) -> tuple[bool, float, int]:
        """Sort by the lab's own name first, then by time, then by the platform's counter."""
        match = _AGAIN.fullmatch(upload.name)
        count = int((match["canvas"] or match["browser"] or 0) if match else 0)
        time = upload.received.timestamp() if upload.received else 0.0
        return (_stem(upload) == self.lab, time, count)

    def _put(self, student: str, upload: Upload, data: bytes) -> None:
        path = inside(self.submitted, student, self.lab, f"{self.lab}.ipynb")
        if _stem(upload) != self.lab:
            self.done.renamed[student] = upload.name
        if path.is_file() and path.read_bytes() == data:
            self.done.unchanged.append(student)
        else:
            if path.is_file():
                self._set_aside("earlier", student, f"{self.lab}.ipynb", path.read_bytes())
                self.done.replaced.append(student)
            drop_drafts(path.parent)  # of a collect that was killed here
            write_whole(path, data)
            self.done.placed.append(student)
        if upload.late:
            self.done.late.append(student)
        if upload.received is not None:
            self.done.received[student] = upload.received
        self._note(upload, student, data, str(path))

    def keep(self, upload: Upload, owner: str, why: str) -> None:
        """Keep a file aside, for this reason."""
        if (data := self._read(upload)) is not None:
            kind = "unknown" if owner == "unknown" else "others"
            named = "" if kind == "unknown" else owner
            path = self._set_aside(kind, named, upload.path, data)
            self.done.aside[upload.path] = why
            if kind == "unknown":
                self.done.unknown.add(upload.path)
            self._note(upload, named, data, f"{path} ({why})")

    def _read(self, upload: Upload) -> bytes | None:
        try:
            return upload.read()
        except ValueError as error:
            self.done.unread[upload.path] = str(error)
            return None

    def _set_aside(self, kind: str, student: str, name: str, data: bytes) -> Path:
        """Write a file under a unique name that says what it was."""
        digest = hashlib.sha256(data).hexdigest()[:8]
        plain = re.sub(r"[^\w.@ -]", "_", name).lstrip(".")
        plain = plain.encode()[-_NAME_BYTES:].decode(errors="ignore")
        path = inside(self.folder / kind, *filter(None, (student,)), f"{digest}-{plain}")
        write_whole(path, data)
        return path

    def _note(self, upload: Upload, student: str, data: bytes, became: str) -> None:
        digest = hashlib.sha256(data).hexdigest()
        line = (self.name, upload.path, student, self.lab, digest, became)
        self.log.append(tuple(map(cell_text, line)))  # as it is read back

    def write_log(self) -> None:
        """Add what happened to each file to the log, once for each file and place."""
        path = self.folder / _LOG
        drop_drafts(self.folder)
        with locked(self.folder):
            before = rows(path, _LOG_HEADER, (), key=()) if path.is_file() else ()
            lines = [tuple(row[column] for column in _LOG_HEADER) for _, row in before]
            write_whole(path, csv_bytes([_LOG_HEADER, *dict.fromkeys([*lines, *self.log])]))
