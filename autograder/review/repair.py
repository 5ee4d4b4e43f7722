"""Repairs a results folder from its journal and the record of the last publication.

No student code runs, no grade is made, and nothing is deleted: damaged files move to `OUT/damaged`.
If interrupted, repeat the command to finish.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from autograder.base.course import Course
from autograder.base.damage import Damaged, is_there
from autograder.base.files import write_whole
from autograder.base.plural import plural
from autograder.model.result import Result
from autograder.model.submission import SubmissionKey
from autograder.publish.audit import changed_questions
from autograder.publish.publishing import publish
from autograder.rules.semester import Semester, read_semester
from autograder.runs.attempts import settle_again
from autograder.runs.room import Classroom
from autograder.store.database import put_up_again
from autograder.store.gradebook_file import require_gradebook
from autograder.store.journal import Journal
from autograder.store.manual_backup import from_json, manual_in, merged, salvaged
from autograder.store.out_folder import FILES, FOLDERS, OutFolder
from autograder.store.out_format import format_of, require_known_format
from autograder.store.published import have_wait, published
from autograder.store.roll import counted, taken
from autograder.store.small_files import SHOWN, SMALL_FILES, TAKEN, WAIVED, SmallFile
from autograder.store.whole_files import WHOLE, is_text

__all__ = ["repair"]


@dataclass
class Repair:
    """The outcome of repairing a results folder."""

    #: The folder.
    out: OutFolder
    #: The new paths of damaged files.
    moved: list[Path] = field(default_factory=list)
    #: A sentence for each file that was rebuilt.
    rebuilt: list[str] = field(default_factory=list)
    #: A sentence for each thing that is lost, with the remedy.
    lost: list[str] = field(default_factory=list)
    #: The results of all labs.
    results: Sequence[Result] = ()

    def move(self, path: Path) -> None:
        """Move a damaged file or folder to `OUT/damaged`."""
        place = self.place_of(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        free, number = place, 1
        while is_there(free):
            number += 1
            free = place.with_name(f"{place.name}.{number}")
        path.rename(free)
        self.moved.append(free)

    def place_of(self, path: Path) -> Path:
        """Return where a damaged file or folder of OUT is moved."""
        return self.out.damaged / path.relative_to(self.out.path)


def repair(out: OutFolder, course: Course) -> Repair:
    """Repair `out`, publish it again, and return what was done.

    Raises ValueError, before anything is written, if `out` isn't a results folder, if the
    instructor's own rules can't be read, or if the course's questions have changed since the grades
    were made.
    """
    with suppress(Damaged):  # repaired below
        require_known_format(out)
    semester = read_semester(out, course)
    work = Repair(out)
    named = {folder: _named(folder) for folder in (out, *out.attempts())}
    if not any([*named.values(), *map(is_there, (out.format, out.published, out.gradebook))]):
        raise ValueError(f"{out} contains no grades; expected the OUT of `autograder grade`")
    _require_same_questions(out, course, {key.lab for key in named[out]})
    for folder in named:
        _move_misplaced(work, folder)
    _move_unreadable(work)
    _mend_format(work)
    _mend_regrade(work)
    shown_is_known = _mend_small_files(work, named, semester)
    lost = _mend_journals(work, list(named))
    _mend_gradebook(work)
    work.lost += _settle(out, course, semester, {key.lab for key in lost})
    work.results = publish(out, course, anew=True)
    if not shown_is_known and (manual := manual_in(out)):
        put_up_again(out, manual)
        work.lost.append(
            f"{SHOWN.path(out)} couldn't be rebuilt, so the grader can't tell which work was "
            "submitted again; it flags all manual grades for a second look in Formgrader"
        )
    return work


def _named(folder: OutFolder) -> set[SubmissionKey]:
    """The submissions of all entries and feedback pages, damaged ones included."""
    return {*folder.entries(), *folder.feedback_pages()}


def _require_same_questions(out: OutFolder, course: Course, labs: set[str]) -> None:
    for lab in sorted(labs):
        try:
            changed = changed_questions(out, lab, course)
        except Damaged:
            continue  # the copy of the lab
        if changed:
            raise ValueError(
                f"{out} contains grades of {lab} from when it had other questions "
                f"({', '.join(changed)}); with --course, name the course as it was then"
            )


def _move_misplaced(work: Repair, folder: OutFolder) -> None:
    """Move files in place of folders, folders in place of files, and whatever isn't readable."""
    kinds: tuple[tuple[Sequence[str], Callable[[Path], bool], int], ...] = (
        (FOLDERS, Path.is_dir, os.R_OK | os.W_OK | os.X_OK),
        (FILES, Path.is_file, os.R_OK),
    )
    for patterns, is_kind, may in kinds:
        for pattern in patterns:
            for path in folder.matching(pattern):
                hidden = path.name.startswith(".") and path.name != pattern
                if not hidden and not (is_kind(path) and os.access(path, may)):
                    work.move(path)


def _move_unreadable(work: Repair) -> None:
    """Move derived files that are damaged; all of them are rewritten later."""
    out = work.out
    for folder in (out, *out.attempts()):
        for pattern, is_whole in WHOLE.items():
            for path in folder.matching(pattern):
                if not is_whole(path):
                    work.move(path)
                    if path == folder.changes:
                        _keep_rows(path, work.moved[-1])


def _keep_rows(log: Path, damaged: Path) -> None:
    """Rewrite the log of changes with its undamaged rows."""
    lines = damaged.read_bytes().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith(b"\n") and is_text(line)]
    if whole:
        write_whole(log, b"".join(whole))


def _mend_format(work: Repair) -> None:
    """Move an unreadable record of the format away; publishing writes the current one."""
    for folder in (work.out, *work.out.attempts()):
        try:
            format_of(folder)
        except Damaged:
            work.move(folder.format)
            work.rebuilt.append(f"{folder.format}: every file is written in the current format")


def _mend_regrade(work: Repair) -> None:
    """Move results that wait for approval away together if any file among them is damaged."""
    top = work.out.regrade
    try:
        for folder in (top, *top.attempts()):
            for small in SMALL_FILES:
                small.read(folder)
    except Damaged:
        work.move(top.path)
        work.lost.append(f"{top} was damaged; run `autograder regrade` again")


def _mend_small_files(
    work: Repair, named: Mapping[OutFolder, set[SubmissionKey]], semester: Semester
) -> bool:
    """Restore the small files; return whether it is known what graders were shown."""
    out = work.out
    try:
        record = published(out)
    except Damaged:
        work.move(out.published)
        record = published(out)
        work.rebuilt.append(f"{out.published}: from the other files")
    has_record = is_there(out.published)
    unknown = set()
    for folder, names in named.items():
        for small in SMALL_FILES:
            copy = record.copy(small) if folder == out else small.empty
            if not _is_gone(work, small, folder, expected=bool(copy or (names and small is TAKEN))):
                continue
            source = "from what was last published"
            if small is TAKEN:
                copy = sorted({tuple(pair) for pair in copy} | names)
                source = "from the journal and what was last published"
            elif small is WAIVED and not has_record:
                copy, source = dict(semester.waived), "from the instructor's rules as they are now"
            if not copy:
                unknown.add(small.name)
            small.write(folder, copy)
            work.rebuilt.append(f"{small.path(folder)}: {source}")
    return SHOWN.name not in unknown


def _is_gone(work: Repair, small: SmallFile, folder: OutFolder, *, expected: bool) -> bool:
    """Whether a small file is missing or damaged; a damaged one is moved away."""
    path = small.path(folder)
    try:
        small.read(folder)
    except Damaged:
        work.move(path)
        return True
    # An interrupted repair may have moved it already.
    moved = is_there(work.place_of(path))
    return not is_there(path) and (expected or moved)


def _mend_journals(work: Repair, folders: Sequence[OutFolder]) -> list[SubmissionKey]:
    """Move damaged entries; return the submissions that no longer have one."""
    for folder in folders:
        journal = Journal(folder)
        for key, path in folder.entries().items():
            if journal.verdicts(key) is None:
                work.move(path)
            elif not journal.whole(key):
                work.lost.append(
                    f"{path}: the verdicts are intact, but the notebook or answers are damaged; "
                    f"`autograder grade {key.lab}` grades {key.student} again"
                )
    out, journal = work.out, Journal(work.out)
    gone = [key for key in taken(out) if journal.verdicts(key) is None]
    in_attempts = {key for folder in out.attempts() for key in taken(folder)}
    work.lost += [
        f"{out.entry(key)} has no grade of {key.student} any more; run `autograder grade "
        f"{key.lab}` again with the submissions' folder"
        for key in gone
        if key not in in_attempts
    ]
    return gone


def _mend_gradebook(work: Repair) -> None:
    """Move a damaged gradebook away, after recording its manual grades for restoration."""
    out, record = work.out, published(work.out)
    if any(place.name.startswith(out.gradebook.name) for place in work.moved):
        work.lost.append(
            f"{out.gradebook} couldn't be read at all. Manual grades come from its last copy, so "
            "enter again in Formgrader any that you gave since the last command"
        )
    elif not is_there(out.gradebook):
        work.rebuilt.append(
            f"{out.gradebook}, which was missing: from the journal, with the manual grades of its "
            "last copy"
        )
    try:
        require_gradebook(out)
    except Damaged:
        copies = {**from_json(record.manual), **from_json(record.waiting)}
        manual, doubts = merged(copies, salvaged(out))
        have_wait(out, manual)
        for part in out.gradebook_parts():
            work.move(part)
        work.rebuilt.append(
            f"{out.gradebook}: from the journal, with manual grades of "
            f"{plural(len(manual), 'submission')}; look there for grades given since the last "
            "command wrote it, which may be lost"
        )
        work.lost += doubts


def _settle(out: OutFolder, course: Course, semester: Semester, lost: set[str]) -> Iterator[str]:
    """Choose again among the attempts at labs where the choice or a chosen entry is lost."""
    there = {key.lab for folder in out.attempts() for key in taken(folder)}
    for lab in sorted(there & (lost | (there - counted(out).keys()))):
        room = Classroom(lab=lab, out=out, course=course, secret=b"", rules=semester.ordinary)
        yield from settle_again(room, semester)
