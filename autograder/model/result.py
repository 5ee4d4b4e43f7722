"""The result of grading one submission, from which all of the grader's output is made."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from autograder.model.note import Note, NoteKind
from autograder.model.status import shown, status_of
from autograder.model.submission import SubmissionKey
from autograder.model.task import Verdict

__all__ = ["End", "Result", "result_from_dict", "result_to_dict"]

End = Literal["graded", "quarantined", "failed"]


@dataclass(frozen=True)
class Result:
    """The outcome of one submission, with everything that is reported about it."""

    #: The student's id.
    student: str
    #: The lab's name.
    lab: str
    #: `graded`; `quarantined`, if the submission can't be read as this lab's notebook; or `failed`,
    #: if grading itself broke, which is never the student's fault.
    end: End
    #: Why it was quarantined or failed.
    reason: str = ""
    #: The verdicts in the lab's order; empty unless graded.
    verdicts: tuple[Verdict, ...] = ()
    #: The submission as it was graded, as nbformat 4 JSON: released cells restored, outputs from
    #: the grader's own run, hidden tests removed.
    notebook: Mapping[str, Any] | None = None
    #: Remarks for the student and the instructor.
    notes: tuple[Note, ...] = ()
    #: False if the code ran without the sandbox.
    isolated: bool = True
    #: The lab's release that the submission names; empty if it names none.
    release: str = ""
    #: Wall time of each task's calls. It differs from run to run, so comparisons of results ignore
    #: it.
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> SubmissionKey:
        """The student and the lab of this result."""
        return SubmissionKey(self.student, self.lab)


def result_to_dict(result: Result) -> dict[str, Any]:
    """Return the result as JSON-ready data; statuses are named as people read them."""
    data = asdict(result)
    for verdict in data["verdicts"]:
        verdict["status"] = shown(verdict["status"])
    return data


def result_from_dict(data: Mapping[str, Any]) -> Result:
    """Return the result that `result_to_dict` turned into data."""
    light = _shared({name: part for name, part in data.items() if name != "notebook"})
    verdicts = tuple(Verdict(**{**v, "status": status_of(v["status"])}) for v in light["verdicts"])
    light |= {"verdicts": verdicts, "notes": tuple(map(_note, light["notes"]))}
    return Result(**light, notebook=data.get("notebook"))


def _note(data: Any) -> Note:
    """Return a note from data. In format 0 of the results folder a note is only a sentence."""
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
    """Return the same data with each text in memory once, because a class's results repeat many."""
    if isinstance(data, str):
        return sys.intern(data)
    if isinstance(data, dict):
        return {sys.intern(name): _shared(part) for name, part in data.items()}
    return [_shared(part) for part in data] if isinstance(data, list) else data
