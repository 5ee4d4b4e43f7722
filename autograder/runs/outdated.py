"""Finds grades that were made under terms that have since changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from autograder.base.course import Course
from autograder.base.limits import Limits
from autograder.rules.semester import read_semester
from autograder.store.fingerprint import changed, terms_of
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from autograder.store.roll import taken

__all__ = ["Outdated", "outdated"]


@dataclass(frozen=True)
class Outdated:
    """Grades of one lab that were made under terms that have since changed."""

    #: The lab.
    lab: str
    #: The number of grades.
    count: int
    #: The difference, as `changed` words it.
    way: str

    def __str__(self) -> str:
        return f"{self.lab}: {self.count} of the grades were made under {self.way}"


def outdated(out: OutFolder, course: Course, limits: Limits | None = None) -> list[Outdated]:
    """Return each way in which grades in `out` were made under other terms, by lab.

    Such terms are another version of a lab's tasks or, if `limits` are given, other limits. Grading
    again may give other grades.
    """
    journal, counts = Journal(out), Counter[tuple[str, str]]()
    entries, rules = taken(out), read_semester(out, course).ordinary
    now = {
        lab: terms_of(lab, course, limits or Limits(), isolated=True, rules=rules)
        for lab in {key.lab for key in entries}
    }
    for key in entries:
        old = journal.terms(key)
        if old is not None:
            # Grades from outside the sandbox are marked as such wherever they are shown.
            same = {"isolated": old["isolated"]} | ({} if limits else {"limits": old["limits"]})
            counts.update((key.lab, way) for way in changed(old, now[key.lab] | same))
    return [Outdated(lab, count, way) for (lab, way), count in sorted(counts.items())]
