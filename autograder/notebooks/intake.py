"""Reads untrusted folders of submitted files as Submissions.

The layout is nbgrader's, DIR/<student>/<lab>/<lab>.ipynb. A student's notebook is opened only if no
part of its path is a link, if it is a plain file with a single name, and if it isn't too large.
This module reads nothing else of a student's folder (`supplementary_files` reads some of it).
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shlex
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from autograder.base.plural import first_of
from autograder.model.definitions import redefined
from autograder.model.note import Note
from autograder.model.submission import Missing, Quarantine, Submission
from autograder.notebooks.parse import MAX_FILE_BYTES, parse_notebook
from autograder.notebooks.released import read_release
from autograder.notebooks.restore import restore
from autograder.notebooks.stamp import release_note, stated_release

__all__ = [
    "find_submissions",
    "is_student_id",
    "open_folder",
    "read_handed",
    "read_submission",
    "take_in",
]

# Letters and digits, and the other characters of student numbers, e-mail addresses and Moodle ids.
_STUDENT = re.compile(r"\w(?:[\w.@ -]{0,98}[\w.@-])?")
# File systems allow names of 255 bytes, and files include the id: `.<id>.entry.<16 digits>`.
_STUDENT_BYTES = 200
_OTHER_LAB = re.compile(r"lab\d\d_\w+")
# Hidden files and folders that programs leave behind; students don't submit them.
_OF_PROGRAMS = re.compile(
    r"\._.+|\.(DS_Store|ipynb_checkpoints|git\w*|hg|svn|idea|vscode|directory|localized|keep|"
    r"AppleDouble|Spotlight-V100|fseventsd|Trash[\w-]*|nfs[0-9a-f]+|snapshots?|zfs)"
)


def is_student_id(name: str) -> bool:
    """Tell whether a folder name can be a student's id: letters, digits, spaces and . _ - @.

    It has at most 100 characters, and 200 bytes in UTF-8.

    >>> is_student_id("ada.l@uni.example"), is_student_id("../eve"), is_student_id("")
    (True, False, False)
    """
    return _STUDENT.fullmatch(name) is not None and len(name.encode()) <= _STUDENT_BYTES


def find_submissions(
    submitted: Path, lab: str, labs: Collection[str] = ()
) -> list[tuple[str, Path]]:
    """Return (student, path of the notebook) for each student who submitted the lab, by name.

    `labs` are the names of all labs of the course.

    The list has every entry of `submitted`, except hidden files of programs and students who
    submitted only other labs. It includes entries that aren't plain notebooks, so that reading
    quarantines them with a reason and no work is silently skipped. A folder whose name can't be a
    student's id is listed under a made-up id.

    Raises NotADirectoryError if `submitted` isn't a folder.
    """
    if not submitted.is_dir():
        raise NotADirectoryError(
            f"{submitted} is not a folder; expected one laid out as <student>/{lab}/{lab}.ipynb"
        )
    found = []
    for entry in sorted(os.scandir(submitted), key=lambda entry: entry.name):
        if _OF_PROGRAMS.fullmatch(entry.name) or _submitted_others_only(entry, lab, labs):
            continue
        student = entry.name if is_student_id(entry.name) else _made_up_id(entry.name)
        found.append((student, submitted / entry.name / lab / f"{lab}.ipynb"))
    return found


def take_in(student: str, lab: str, raw: bytes, release_notebook: Mapping[str, Any]) -> Submission:
    """Return the submission whose notebook file has the bytes `raw`.

    `release_notebook` is the lab's released notebook as nbformat 4 JSON, and decides which cells
    are given. Raises Quarantine, with the reason, if the bytes aren't a notebook of this lab.
    """
    cells, notes, metadata = parse_notebook(raw)
    notes += release_note(metadata, release_notebook)
    notebook, to_run, repairs = restore(read_release(release_notebook), cells)
    own = [cell.source for cell in to_run if cell.kind != "given"]
    notes = [*notes, *repairs, *_redefined_note(own)]
    return Submission(student, lab, raw, notebook, to_run, tuple(notes), stated_release(metadata))


def _redefined_note(sources: Sequence[str]) -> list[Note]:
    """A note on the names that a later cell defines again; empty if there are none."""
    names = redefined(sources)
    if not names:
        return []
    shown = ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
    said = (
        f"Defined again in a later cell: {shown}. Each exercise was judged with these names as "
        "its own cell defined them."
    )
    return [Note("repair", said)]


def read_submission(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of the file `path`, whose last three parts are student, lab and file.

    Follows no link below the folder that holds the students. Raises Quarantine if the file is
    missing, isn't a plain file with a single name, or is larger than `max_bytes`.
    """
    name = path.name
    with open_folder(path) as folder:
        shown = "/".join(path.parts[-3:])
        with _closing(_open(folder, name, shown, os.O_NONBLOCK)) as file:
            return _read(file, max_bytes)


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Open the folder of a submission's file; takes `path` and raises as `read_submission`."""
    student, lab = path.parts[-3:-1]
    if not is_student_id(student):
        raise Quarantine(
            f"The folder name {student!r} can't be a student's id; expected letters, digits, "
            "spaces and . _ - @, at most 100 (200 bytes), starting with a letter or a digit. "
            "Rename the folder."
        )
    with ExitStack() as stack:
        top = os.open(path.parents[2], os.O_RDONLY | os.O_DIRECTORY)
        folder = stack.enter_context(_closing(top))
        for part, shown in ((student, student), (lab, f"{student}/{lab}")):
            opened = _open(folder, part, shown, os.O_DIRECTORY)
            folder = stack.enter_context(_closing(opened))
        yield folder


def read_handed(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of a student's notebooks of these names.

    `path` comes from `find_submissions`. If only some of several notebooks are missing, and no
    other notebook is in their place, returns the rest. Raises Quarantine as `read_submission` does.
    """
    found: dict[str, bytes] = {}
    missing: list[Missing] = []
    for name in names:
        try:
            found[name] = read_submission(path.with_name(f"{name}.ipynb"))
        except Missing as error:
            missing.append(error)
    files = {f"{name}.ipynb" for name in names}
    for absent in missing:
        if not found or any(n.endswith(".ipynb") and n not in files for n in absent.there):
            raise absent
    return found


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(folder: int, name: str, shown: str, flags: int) -> int:
    """Open an entry of a folder: a folder if the flags ask for one, else a plain file."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        wanted = stat.S_ISDIR(mode) if flags & os.O_DIRECTORY else stat.S_ISREG(mode)
        if wanted:
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | flags, dir_fd=folder)
    except FileNotFoundError:
        there = tuple(sorted(n for n in os.listdir(folder) if not n.startswith(".")))
        raise Missing(f"There is no {shown}; {_told(there)}.", there) from None
    except PermissionError:
        raise Quarantine(
            f"{shown} can't be read (permission denied). Let the grader's user read it, as with "
            f"`chmod -R u+rX {shlex.quote(shown.partition('/')[0])}`, and grade again."
        ) from None
    except OSError as error:
        # The entry was replaced between the check and the opening.
        if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise
        mode = 0
    expected = "a folder" if flags & os.O_DIRECTORY else "a plain file"
    found = "a link" if stat.S_ISLNK(mode) else "something else"
    raise Quarantine(f"{shown} has to be {expected}, but is {found}, so it wasn't opened.")


def _told(names: Sequence[str]) -> str:
    if not names:
        return "its folder is empty"
    return f"its folder holds {first_of([repr(name[:80]) for name in names])}"


def _read(file: int, max_bytes: int) -> bytes:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise Quarantine("The notebook isn't a plain file, so it wasn't read.")
    if status.st_nlink != 1:
        raise Quarantine(
            "The notebook's file has a second name elsewhere (a hard link), so it wasn't read. "
            "Put a copy of it in its place."
        )
    with open(file, "rb", closefd=False) as stream:
        raw = stream.read(max_bytes + 1)  # the file may be growing
    if len(raw) > max_bytes:
        raise Quarantine(
            f"The notebook is over {max_bytes / 2**20:g} MiB. Clear its outputs and submit it "
            "again."
        )
    return raw


def _made_up_id(name: str) -> str:
    """A unique id that no student can have, because students' ids contain no `~`."""
    return f"unnamed~{hashlib.sha256(os.fsencode(name)).hexdigest()[:32]}"


def _submitted_others_only(entry: os.DirEntry[str], lab: str, labs: Collection[str]) -> bool:
    """Whether a student's folder holds other labs, and nothing that could be this lab.

    A folder with this lab's number could be, if its name is misspelt; so could a folder that can't
    be read.
    """
    if not entry.is_dir(follow_symlinks=False):
        return False
    try:
        names = [path.name for path in Path(entry).iterdir() if not path.name.startswith(".")]
    except OSError:
        return False
    return bool(names) and lab not in names and all(_is_other(name, lab, labs) for name in names)


def _is_other(name: str, lab: str, labs: Collection[str]) -> bool:
    """Whether a folder belongs to another lab, of this course or of an earlier one."""
    number = lab.partition("_")[0]
    return name in labs or (
        _OTHER_LAB.fullmatch(name) is not None and name.partition("_")[0] != number
    )
