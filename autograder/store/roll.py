"""Who handed in, who is absent, and which attempt counts, as a results folder has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from autograder.store.small_files import COUNTED, TAKEN

__all__ = [
    "ATTEMPTS",
    "absent",
    "attempt_folders",
    "counted",
    "note_counted",
    "note_taken",
    "taken",
]

ATTEMPTS = "attempts"  # the folder of OUT in which attempts are graded


def taken(out: Path) -> list[tuple[str, str]]:
    """Return (student, lab) of all submissions that were taken in into `out`, of every lab."""
    return [(student, lab) for student, lab in TAKEN.read(out)]


def note_taken(out: Path, lab: str, students: Iterable[str]) -> None:
    """Write down that these students' work on the lab, and no other's, was taken in."""
    others = [[student, other] for student, other in taken(out) if other != lab]
    TAKEN.write(out, sorted(others + [[student, lab] for student in students]))


def absent(out: Path, students: Iterable[str]) -> list[tuple[str, str]]:
    """Return (student, lab) of those `students` of whom nothing was taken in, by lab."""
    there = set(taken(out))
    labs, names = sorted({lab for _, lab in there}), list(students)
    return [(name, lab) for lab in labs for name in names if (name, lab) not in there]


def attempt_folders(out: Path) -> list[Path]:
    """Return the folders in which attempts are graded, each laid out as `out`; none without."""
    return sorted(path for path in out.glob(f"{ATTEMPTS}/*") if path.is_dir())


def counted(out: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return, by lab and student, which attempt counts: `folder`, `received`, `percent_off`."""
    return dict(COUNTED.read(out))


def note_counted(out: Path, chosen: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Write down which attempts count at these labs; other labs' stay as they are."""
    COUNTED.write(out, {**counted(out), **chosen})
