"""The names that a task's ban finds in sources."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.model.banned_uses import banned_uses, uses_beside
from autograder.model.restrictions import Ban
from autograder.model.submission import RunCell
from autograder.model.task import Task

__all__ = ["names_used", "names_used_by"]


def names_used_by(task: Task, *sources: str, allows: Sequence[str] = ()) -> list[str]:
    """The names that `task` forbids in cells with these sources; none is another exercise's."""
    cells = [RunCell(place, source, "own") for place, source in enumerate(sources)]
    uses = [*banned_uses(task, cells, allows), *uses_beside(task, cells, allows)]
    return [use.name for use in uses]


def names_used(ban: Ban, defines: Sequence[str], sources: Sequence[str]) -> list[str]:
    """The names that `ban` forbids in an exercise that asks for the names in `defines`."""
    task = Task("lab01-f", {"part": 1}, tuple(defines), "f", lambda _: [], lambda *_: {}, ban=ban)
    return names_used_by(task, *sources)
