"""What became of one submission. Everything that leaves the grader is made of Results."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from autograder.model.task import Verdict

__all__ = ["End", "Result", "result_from_dict", "result_to_dict"]

End = Literal["graded", "quarantined", "failed"]


@dataclass(frozen=True)
class Result:
    """One submission's end.

    `end` is `graded`; or `quarantined`, when what was handed in cannot be read as this lab's
    notebook; or `failed`, when grading itself broke, which is never the student's fault. `reason`
    says why in the last two cases. `verdicts` are in the lab's order, empty unless graded.
    `notebook` is the submission as it was graded, in nbformat 4's JSON: released cells restored,
    outputs those of the grader's own run, no hidden test in it. `notes` are sentences for the
    student and the instructor about what was repaired. `isolated` is False where the code ran
    without the sandbox. `release` is which release of the lab the submission says it is of, empty
    where it does not say. `seconds` is how long each task's calls took, by the wall clock: it is
    another from run to run, and no part of what makes two results the same.
    """

    student: str
    lab: str
    end: End
    reason: str = ""
    verdicts: tuple[Verdict, ...] = ()
    notebook: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    isolated: bool = True
    release: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)


def result_to_dict(result: Result) -> dict[str, Any]:
    """Return the result as JSON-ready data."""
    return asdict(result)


def result_from_dict(data: Mapping[str, Any]) -> Result:
    """Return the result that `result_to_dict` wrote."""
    light = _shared({name: part for name, part in data.items() if name != "notebook"})
    verdicts = tuple(Verdict(**verdict) for verdict in light["verdicts"])
    light |= {"verdicts": verdicts, "notes": tuple(light["notes"])}
    return Result(**light, notebook=data.get("notebook"))


def _shared(data: Any) -> Any:
    """The same data with each text in memory once: the results of a class say the same words."""
    if isinstance(data, str):
        return sys.intern(data)
    if isinstance(data, dict):
        return {sys.intern(name): _shared(part) for name, part in data.items()}
    return [_shared(part) for part in data] if isinstance(data, list) else data
