"""What became of one submission. Everything that leaves the grader is made of Results."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from autograder.model.note import Note, NoteKind
from autograder.model.submission import SubmissionKey
from autograder.model.task import Verdict

__all__ = ["End", "Result", "result_from_dict", "result_to_dict"]

End = Literal["graded", "quarantined", "failed"]


@dataclass(frozen=True)
class Result:
    """One submission's end, and all that is told of it."""

    #: The student's id.
    student: str
    #: The lab's name.
    lab: str
    #: `graded`; `quarantined`, if the submission can't be read as this lab's notebook; or `failed`,
    #: if grading itself broke, which is never the student's fault.
    end: End
    #: Why it is quarantined or failed.
    reason: str = ""
    #: The verdicts in the lab's order; empty unless graded.
    verdicts: tuple[Verdict, ...] = ()
    #: The submission as it was graded, in nbformat 4's JSON: released cells restored, outputs those
    #: of the grader's own run, no hidden test in it.
    notebook: Mapping[str, Any] | None = None
    #: Remarks for the student and the instructor.
    notes: tuple[Note, ...] = ()
    #: False if the code ran without the sandbox.
    isolated: bool = True
    #: Which release of the lab the submission says it is of; empty if it does not say.
    release: str = ""
    #: How long each task's calls took, by the wall clock. It is another from run to run, and no
    #: part of what makes two results the same.
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> SubmissionKey:
        """Whose work on which lab this is the result of."""
        return SubmissionKey(self.student, self.lab)


def result_to_dict(result: Result) -> dict[str, Any]:
    """Return the result as JSON-ready data."""
    return asdict(result)


def result_from_dict(data: Mapping[str, Any]) -> Result:
    """Return the result that `result_to_dict` wrote."""
    light = _shared({name: part for name, part in data.items() if name != "notebook"})
    verdicts = tuple(Verdict(**verdict) for verdict in light["verdicts"])
    light |= {"verdicts": verdicts, "notes": tuple(map(_note, light["notes"]))}
    return Result(**light, notebook=data.get("notebook"))


def _note(data: Any) -> Note:
    """A note as it was written; in folders of format 0 it is the sentence alone."""
    if not isinstance(data, str):
        return Note(**data)
    kinds = (kind for start, kind in _KINDS_AT_FORMAT_0.items() if data.startswith(start))
    return Note(next(kinds, "repair"), data)


_KINDS_AT_FORMAT_0: Mapping[str, NoteKind] = {
    "Given cells that were changed ": "given",
    "Received ": "receipt",
    "There is no receipt ": "receipt",
    "This machine refuses namespaces": "sandbox",
    "This notebook is of release ": "release",
}


def _shared(data: Any) -> Any:
    """The same data with each text in memory once: the results of a class say the same words."""
    if isinstance(data, str):
        return sys.intern(data)
    if isinstance(data, dict):
        return {sys.intern(name): _shared(part) for name, part in data.items()}
    return [_shared(part) for part in data] if isinstance(data, list) else data
