"""Makes a results folder whole again, from its journal and what was last published.

No student's code runs, no grade is made, and nothing is deleted: what is damaged is moved to
`OUT/damaged`. Cut off at any point, the same command does the rest.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.base.damage import Damaged, is_there
from autograder.base.files import write_whole
from autograder.model.result import Result
from autograder.notebooks.questions import questions_of
from autograder.publish.audit import questions_then
from autograder.publish.publishing import publish
from autograder.rules.semester import Semester, read_semester
from autograder.runs.attempts import settle_again
from autograder.runs.classroom import Classroom
from autograder.store.database import put_up_again
from autograder.store.gradebook_file import gradebook_path, require_gradebook
from autograder.store.journal import Journal
from autograder.store.manual_backup import from_json, manual_in, merged, salvaged
from autograder.store.published import PUBLISHED, have_wait, published
from autograder.store.roll import attempt_folders, counted, taken
from autograder.store.small_files import SHOWN, SMALL_FILES, TAKEN, WAIVED, SmallFile

__all__ = ["DAMAGED", "Repair", "repair"]

DAMAGED = "damaged"  # the folder to which damaged files are moved
_REGRADE = "regrade"

# What a results folder has, from the top down, so that a folder is looked at before what is in it.
_FOLDERS = (
    *("journal", "journal/*", "feedback", "feedback/*", "source", "source/*", "export"),
    *("autograded", "autograded/*", "autograded/*/*"),
    *("submitted", "submitted/*", "submitted/*/*", "attempts", "attempts/*", _REGRADE),
)
_FILES = (
    *(small.name for small in SMALL_FILES),
    *(PUBLISHED, "nbgrader_config.py", "gradebook.db", ".gradebook.lock"),
    *("grades.csv", "needs_a_person.csv", "changes.csv", "changes_proposed.csv"),
    *("journal/*/*.entry", "feedback/*/*.html", "source/*/*.ipynb"),
    *("autograded/*/*/*.ipynb", "export/*"),
)


@dataclass
class Repair:
    """What was done: files `moved`, what was `rebuilt`, what is `lost` and the remedy."""

    out: Path
    moved: list[Path] = field(default_factory=list)
    rebuilt: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    results: Sequence[Result] = ()

    def move(self, path: Path) -> None:
        """Move a damaged file or folder to its place below `DAMAGED`."""
        place = self.out / DAMAGED / path.relative_to(self.out)
        place.parent.mkdir(parents=True, exist_ok=True)
        free, number = place, 1
        while is_there(free):
            number += 1
            free = place.with_name(f"{place.name}.{number}")
        path.rename(free)
        self.moved.append(free)


def repair(out: Path, root: Path) -> Repair:
    """Make `out` whole, publish it anew, and return what was done.

    Raises ValueError, before anything is moved, if the instructor's own rules cannot be read, or
    the course in `root` has other questions by now than the grades have answers to.
    """
    semester = read_semester(out, root)
    work = Repair(out)
    named = {folder: _named(folder) for folder in (out, *attempt_folders(out))}
    _require_same_questions(out, root, {lab for _, lab in named[out]})
    for folder in named:
        _move_misplaced(work, folder)
    _move_unreadable(work)
    _mend_regrade(work)
    shown_is_known = _mend_small_files(work, named, semester)
    lost = _mend_journals(work, list(named))
    _mend_gradebook(work)
    work.lost += _settle(out, root, semester, {lab for _, lab in lost})
    work.results = publish(out, root, anew=True)
    if not shown_is_known and (manual := manual_in(out)):
        put_up_again(out, manual)
        work.lost.append(
            f"{SHOWN.path(out)} could not be rebuilt, so it is not known which work was handed in "
            "anew; all manual grades are put up for a second look in Formgrader"
        )
    return work


def _named(folder: Path) -> set[tuple[str, str]]:
    """(student, lab) of all entries and feedback pages, damaged ones included."""
    entries = {(path.stem, path.parent.name) for path in folder.glob("journal/*/*.entry")}
    return entries | {(path.parent.name, path.stem) for path in folder.glob("feedback/*/*.html")}


def _require_same_questions(out: Path, root: Path, labs: set[str]) -> None:
    for lab in sorted(labs):
        try:
            then = {question.id for question in questions_then(out, lab)}
        except (ValueError, OSError):
            continue  # the copy of the lab is damaged itself
        now = {question.id for question in questions_of([lab], root)[lab]}
        if then and then != now:
            raise ValueError(
                f"{out} holds grades of {lab} from when it had other questions "
                f"({', '.join(sorted(then ^ now))}); give --course the course as it was then"
            )


def _move_misplaced(work: Repair, folder: Path) -> None:
    """Move what is no folder where one belongs, no file where one does, or may not be read."""
    kinds: tuple[tuple[Sequence[str], Callable[[Path], bool], int], ...] = (
        (_FOLDERS, Path.is_dir, os.R_OK | os.W_OK | os.X_OK),
        (_FILES, Path.is_file, os.R_OK),
    )
    for patterns, is_kind, may in kinds:
        for pattern in patterns:
            for path in sorted(folder.glob(pattern)):
                hidden = path.name.startswith(".") and path.name != pattern
                if not hidden and not (is_kind(path) and os.access(path, may)):
                    work.move(path)


def _move_unreadable(work: Repair) -> None:
    """Move derived files that are not whole; all of them are written again."""
    out = work.out
    for folder in (out, *attempt_folders(out)):
        for pattern, is_whole in _WHOLE.items():
            for path in sorted(folder.glob(pattern)):
                if not is_whole(path):
                    work.move(path)
                    if path.name == "changes.csv":
                        _keep_rows(path, work.moved[-1])


def _is_page(path: Path) -> bool:
    data = path.read_bytes()
    return data.endswith(b"</html>\n") and _is_text(data)


def _is_notebook(path: Path) -> bool:
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and isinstance(data.get("cells"), list)


def _is_table(path: Path) -> bool:
    data = path.read_bytes()
    return data.endswith(b"\n") and _is_text(data)


def _is_zip(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError):
        return False


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


_WHOLE: Mapping[str, Callable[[Path], bool]] = {
    "feedback/*/*.html": _is_page,
    "autograded/*/*/*.ipynb": _is_notebook,
    "source/*/*.ipynb": _is_notebook,
    "*.csv": _is_table,
    "export/*.csv": _is_table,
    "export/*.zip": _is_zip,
}


def _keep_rows(log: Path, damaged: Path) -> None:
    """Write the log of changes with those of its rows that are whole."""
    lines = damaged.read_bytes().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith(b"\n") and _is_text(line)]
    if whole:
        write_whole(log, b"".join(whole))


def _mend_regrade(work: Repair) -> None:
    """Move results that wait for an agreement away as one, if any file among them is damaged."""
    top = work.out / _REGRADE
    try:
        for folder in (top, *attempt_folders(top)):
            for small in SMALL_FILES:
                small.read(folder)
    except Damaged:
        work.move(top)
        work.lost.append(f"{top} was damaged; run `autograder regrade` again")


def _mend_small_files(
    work: Repair, named: Mapping[Path, set[tuple[str, str]]], semester: Semester
) -> bool:
    """Put the small files back; return whether what graders were shown is known."""
    out = work.out
    try:
        record = published(out)
    except Damaged:
        work.move(out / PUBLISHED)
        record = published(out)
        work.rebuilt.append(f"{out / PUBLISHED}: from the other files")
    has_record = is_there(out / PUBLISHED)
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


def _is_gone(work: Repair, small: SmallFile, folder: Path, *, expected: bool) -> bool:
    """Whether a small file is missing or damaged; then it is out of the way."""
    path = small.path(folder)
    try:
        small.read(folder)
    except Damaged:
        work.move(path)
        return True
    # A repair that was cut off may have moved it already.
    moved = is_there(work.out / DAMAGED / path.relative_to(work.out))
    return not is_there(path) and (expected or moved)


def _mend_journals(work: Repair, folders: Sequence[Path]) -> list[tuple[str, str]]:
    """Move damaged entries; return (student, lab) of those in OUT that have none any more."""
    for folder in folders:
        journal = Journal(folder)
        for path in sorted(folder.glob("journal/*/*.entry")):
            student, lab = path.stem, path.parent.name
            if journal.verdicts(lab, student) is None:
                work.move(path)
            elif not journal.whole(lab, student):
                work.lost.append(
                    f"{path}: the verdicts are there, but the notebook or the answers are damaged; "
                    f"`autograder grade {lab}` grades {student} again"
                )
    journal = Journal(work.out)
    gone = [(s, lab) for s, lab in taken(work.out) if journal.verdicts(lab, s) is None]
    in_attempts = {key for folder in attempt_folders(work.out) for key in taken(folder)}
    work.lost += [
        f"{journal.path(lab, student)} has no grade of {student} any more; run `autograder grade "
        f"{lab}` again with the submissions' folder"
        for student, lab in gone
        if (student, lab) not in in_attempts
    ]
    return gone


def _mend_gradebook(work: Repair) -> None:
    """Move a damaged gradebook, after its manual grades were written down to be put back."""
    out, record = work.out, published(work.out)
    if any(place.name.startswith("gradebook.db") for place in work.moved):
        work.lost.append(
            f"{gradebook_path(out)} could not be read at all; manual grades are those of its last "
            "copy, so give again in Formgrader what was given since the last command"
        )
    try:
        require_gradebook(out)
    except Damaged:
        copies = {**from_json(record.manual), **from_json(record.waiting)}
        manual, doubts = merged(copies, salvaged(out))
        have_wait(out, manual)
        path = gradebook_path(out)
        for part in (path, *sorted(out.glob(f"{path.name}-*"))):
            work.move(part)
        work.rebuilt.append(
            f"{path}: from the journal, with manual grades of {len(manual)} submissions; any that "
            "were given since the last command wrote the gradebook may be lost, so look there"
        )
        work.lost += doubts


def _settle(out: Path, root: Path, semester: Semester, lost: set[str]) -> Iterator[str]:
    """Choose again among the attempts at labs where the choice, or a chosen entry, is lost."""
    there = {lab for folder in attempt_folders(out) for _, lab in taken(folder)}
    for lab in sorted(there & (lost | (there - counted(out).keys()))):
        room = Classroom(lab=lab, out=out, root=root, secret=b"", rules=semester.ordinary)
        yield from settle_again(room, semester)
