"""Defines the settings that all submissions of one grading share, and the type of a submission."""

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
    """The settings that all submissions of one grading share. Each worker gets a copy."""

    #: The lab's name.
    lab: str
    #: Where the results go.
    out: OutFolder
    #: The course that gives the lab.
    course: Course
    #: The course's secret, which seeds the drawn cases.
    secret: bytes = field(repr=False)
    #: What one submission may use.
    limits: Limits = field(default_factory=Limits)
    #: Whether students' code runs in the sandbox; otherwise every result is marked.
    isolated: bool = True
    #: Whether a grade stays that was made under other terms, or that left something out for lack of
    #: a GPU. `autograder grade` sets it, since only `regrade` shows what changes, and asks.
    keeps_old: bool = False
    #: How an ordinary assignment is scored.
    rules: Rules = SANE

    def terms(self) -> dict[str, Any]:
        """Return what a grade of this room depends on besides the submission, for the journal."""
        return terms_of(
            self.lab, self.course, self.limits, isolated=self.isolated, rules=self.rules
        )
