"""Finds mistakes in the folders on the command line before any work is done."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.base.plural import first_of

if TYPE_CHECKING:
    from autograder.rules.semester import Semester
    from autograder.runs.room import Classroom, Handed

__all__ = [
    "gone",
    "misspelt",
    "other_notebooks",
    "require_folders",
    "require_writable",
    "strangers",
]


def require_folders(room: Classroom, submitted: Path, folders: Collection[str]) -> None:
    """Raise ValueError or OSError for a wrong folder before anything is written.

    `submitted`, or the `folders` in it that receipts name, must contain submissions of the lab. OUT
    must be a separate, writable folder that isn't a course, and any grades of the lab in it must
    have the same questions.
    """
    from autograder.grading.registry import find_lab
    from autograder.notebooks.questions import source_notebook
    from autograder.store.out_folder import OutFolder
    from autograder.store.small_files import TAKEN

    lab = find_lab(room.lab, room.course, room.rules)
    lab.prepare()
    source_notebook(room.lab, room.course)
    out, files = room.out, [f"{room.lab}/{name}.ipynb" for name in lab.notebooks]
    layout = f"expected a folder laid out as <student>/{files[0]}"
    if not submitted.is_dir():
        raise NotADirectoryError(f"{submitted} is not a folder; {layout}")
    if TAKEN.path(OutFolder(submitted)).is_file():
        raise ValueError(f"{submitted} is a results folder; {layout}")
    if submitted in (out.path, *out.path.parents):
        raise ValueError(
            f"{out} is inside {submitted}, where each folder belongs to a student; give another OUT"
        )
    if out.nbgrader_config.is_file() and not TAKEN.path(out).is_file():
        raise ValueError(
            f"{out} is an nbgrader course, and grading would overwrite its settings, sources and "
            "gradebook; give another OUT, such as a new folder"
        )
    bases = [submitted / folder for folder in folders or [""]]
    if not any(any(base.glob(f"*/{file}")) for base in bases for file in files):
        names = (entry.name for entry in os.scandir(submitted) if entry.name[0] != ".")
        raise ValueError(
            f"{submitted} contains no student's {files[0]}; {layout}{_it_holds(names)}"
        )
    require_writable(out.path)
    _require_same_questions(room)


def other_notebooks(room: Classroom, handed: Iterable[Handed]) -> list[str]:
    """Return a sentence that names students who submitted further notebooks, if any.

    Their work may be in one of those: JupyterLab names a copy `<lab>-Copy1.ipynb`.
    """
    from autograder.grading.registry import find_lab

    own = {f"{name}.ipynb" for name in find_lab(room.lab, room.course, room.rules).notebooks}
    who = []
    for student, path in handed:
        if not (path.parent.is_symlink() or path.parent.parent.is_symlink()):
            others = sorted(p.name for p in path.parent.glob("*.ipynb") if p.name not in own)
            who += [f"{student} ({', '.join(others[:2])})"] if others else []
    if not who:
        return []
    names = " and ".join(sorted(own))
    return [
        f"{room.lab}: only {names} is graded; other notebooks were not opened: {first_of(who)}."
    ]


def misspelt(room: Classroom, students: Collection[str], semester: Semester) -> list[str]:
    """Return a sentence for each id that looks misspelt.

    These are ids of submissions that differ from the roster's in case, spaces or accents, and ids
    in the extensions that are neither on the roster nor a submission's. Without a roster, only ids
    in the extensions that differ from a submission's in case, spaces or accents are noticed.
    """
    roster = [student.id for student in semester.roster]
    by_letters = {_letters(name): name for name in (*students, *roster)}
    problems = [
        f"{name}, {room.lab}: submitted, but the roster spells it "
        f"{by_letters[_letters(name)]}, who gets 0 points; rename the folder or correct the roster"
        for name in sorted(set(students) - set(roster))
        if roster and by_letters[_letters(name)] != name
    ]
    for student, lab in sorted(semester.extensions):
        near = by_letters.get(_letters(student))
        if lab != room.lab or student in students or student in roster or not (roster or near):
            continue
        hint = f"; did you mean {near}?" if near else ""
        problems.append(
            f"{student}, {lab}: has an extension, but this id is neither on the roster nor among "
            f"the submissions{hint}"
        )
    return problems


def gone(lab: str, before: Iterable[str], now: Iterable[str], submitted: Path) -> list[str]:
    """Return a sentence that names students whose earlier submission isn't there any more."""
    who = sorted(set(before) - set(now))
    if not who:
        return []
    return [
        f"{lab}: collected earlier but no longer in {submitted}, so not counted: {first_of(who)}. "
        "If that is a mistake, put the submissions back and run the command again; it restores "
        "their grades."
    ]


def strangers(lab: str, students: Iterable[str], roster: Iterable[str]) -> list[str]:
    """Return a sentence that names students who submitted but aren't on the roster, if any."""
    known = set(roster)
    who = sorted(set(students) - known) if known else []
    if not who:
        return []
    return [f"{lab}: submissions from students who aren't on the roster: {first_of(who)}."]


def _letters(name: str) -> str:
    """An id without differences in case, spaces and the encoding of accents."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def require_writable(folder: Path, name: str = "OUT") -> None:
    """Make a folder. Raises ValueError, which asks for another `name`, if it can't be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        why = "" if os.access(folder, os.W_OK | os.X_OK) else "Permission denied"
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise ValueError(f"{folder} can't be written ({why}); give another {name}")


def _require_same_questions(room: Classroom) -> None:
    from autograder.publish.audit import changed_questions

    if changed := changed_questions(room.out, room.lab, room.course):
        raise ValueError(
            f"{room.out} contains grades of {room.lab} from when it had other questions "
            f"({first_of(changed)}); grade into a new folder"
        )


def _it_holds(names: Iterable[str]) -> str:
    there = sorted(names)
    return f", but it contains {first_of(there)}" if there else ", but it is empty"
