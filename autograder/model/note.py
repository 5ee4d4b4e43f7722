"""A remark on a submission, for the student and the instructor, and what it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Note", "NoteKind"]

#: `repair` tells what of the notebook was put right, `given` which given cells were changed,
#: `release` of which other release it is, `receipt` when it came, `sandbox` how its code ran.
NoteKind = Literal["repair", "given", "release", "receipt", "sandbox"]


@dataclass(frozen=True)
class Note:
    """A sentence that people read, and the kind by which code tells it from others."""

    #: What the sentence is about.
    kind: NoteKind
    #: The sentence.
    text: str

    def __str__(self) -> str:
        return self.text
