"""A remark on a submission, for the student and the instructor, with its kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Note", "NoteKind"]

#: `repair`: what was repaired in the notebook; `given`: which given cells were changed; `release`:
#: that it belongs to another release; `receipt`: when it arrived; `sandbox`: how its code ran.
NoteKind = Literal["repair", "given", "release", "receipt", "sandbox"]


@dataclass(frozen=True)
class Note:
    """A sentence for people to read, and its kind, which code uses instead."""

    #: The subject of the sentence.
    kind: NoteKind
    #: The sentence.
    text: str

    def __str__(self) -> str:
        return self.text
