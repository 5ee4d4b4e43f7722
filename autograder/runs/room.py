"""The settings that all submissions of one grading share, and the type of a submission."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.base.course import Course
from autograder.base.limits import Limits
from autograder.model.scoring import SANE, Rules
from autograder.store.fingerprint import terms_of
from autograder.store.out_folder import OutFolder

__all__ = ["Classroom", "Handed"]

Handed = tuple[str, Path]  # a student, and the path of the submission's notebook


@dataclass(frozen=True)
class Classroom:
    """What all submissions of one grading have in common. Each worker gets a copy."""

    #: The lab's name.
    lab: str
    #: Where the results go.
    out: OutFolder
    #: The course that gives the lab.
    course: Course
    #: The course's secret, from which cases are drawn.
    secret: bytes = field(repr=False)
    #: What one submission may use.
    limits: Limits = field(default_factory=Limits)
    #: False runs students' code without the sandbox, and marks every result.
    isolated: bool = True
    #: Keeps a grade that was made under other terms, or that left something out for lack of a GPU:
    #: what `autograder grade` does, since only `regrade` shows what changes, and asks.
    keeps_old: bool = False
    #: What an ordinary assignment is scored by.
    rules: Rules = SANE

    def terms(self) -> dict[str, Any]:
        """What a grade of this room depends on besides the submission, as the journal keeps it."""
        return terms_of(
            self.lab, self.course, self.limits, isolated=self.isolated, rules=self.rules
        )
