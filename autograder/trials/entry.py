"""One answer of the answer bank, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Entry"]


@dataclass(frozen=True)
class Entry:
    """One answer of the answer bank."""

    #: The id of its task.
    task: str
    #: Whether it is correct.
    kind: Literal["right", "wrong"]
    #: Its name, unique among the task's answers of its kind.
    name: str
    #: The id of the mistake that it is named after; None if there is none.
    mistake: str | None
    #: The solution cell.
    source: str
    #: The task's points for a correct answer; the most points it may get for an incorrect one.
    earns: float
    #: Its docstring, on what is special about it.
    about: str

    @property
    def label(self) -> str:
        """A unique name among all answers: `lab03-adam_step/right_loops`."""
        return f"{self.task}/{self.kind}_{self.name}"
