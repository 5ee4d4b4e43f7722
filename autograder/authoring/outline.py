"""Reads the outline of a lab: its core and stretch exercises, with minutes and points.

A lab has its outline three times: in the title cell's table, in the exercises' headings, and in its
Tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nbformat import NotebookNode

from autograder.model.task import Lab

__all__ = ["Exercise", "headings", "minutes_and_points", "outline_violations"]

#: The core fits into one session, and the stretch into the rest of a long one.
MOST_MINUTES = {"core": 75, "stretch": 45}

_HEADING = re.compile(
    r"^## (?P<number>\d+\.\d+) (?P<title>.+?) \((?P<kind>core|stretch), "
    r"(?P<points>[\d.]+) points?, (?P<minutes>\d+) minutes(, GPU)?\)$"
)
_ANY_HEADING = re.compile(r"^## \d+\.\d+ .*$")
_ROW = re.compile(
    r"^\| (?P<number>\d+\.\d+) (?P<title>.+?) \| (?P<kind>core|stretch) \| (?P<minutes>\d+) "
    r"\| (?P<points>[\d.]+) \|$"
)
_SUM = "| **{kind}** | | **{minutes}** | **{points:g}** |"


@dataclass(frozen=True)
class Exercise:
    """One exercise, as read from its heading or its row in the title cell's table."""

    #: Its number, such as `4.2`.
    number: str
    #: Its title.
    title: str
    #: `core` or `stretch`.
    kind: str
    #: The expected time.
    minutes: int
    #: Its maximum points.
    points: float


def headings(notebook: NotebookNode) -> list[Exercise]:
    """Return the exercises in the notebook's headings, in order."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            lines = cell.source.splitlines()
            found += [_exercise(match) for match in map(_HEADING.match, lines) if match]
    return found


def minutes_and_points(exercises: Sequence[Exercise], kind: str) -> tuple[int, float]:
    """Return the sums over the exercises of one kind, "core" or "stretch"."""
    of_kind = [exercise for exercise in exercises if exercise.kind == kind]
    return sum(e.minutes for e in of_kind), sum(e.points for e in of_kind)


def outline_violations(notebook: NotebookNode, lab: Lab) -> Iterator[str]:
    """Yield a sentence for each disagreement between title, headings and tasks."""
    title = _title(notebook).splitlines()
    rows = [_exercise(match) for match in map(_ROW.match, title) if match]
    found = headings(notebook)
    yield from _without_kind(notebook)
    if rows != found:
        yield (
            f"title: its table has {_differing(rows, found)}, but the headings have "
            f"{_differing(found, rows)}. Write a row as `| 4.2 Title | core | minutes | points |`."
        )
    for kind, most in MOST_MINUTES.items():
        minutes, points = minutes_and_points(found, kind)
        row = _SUM.format(kind=kind, minutes=minutes, points=points)
        if row not in title:
            yield f"title: expected the sums of its {kind} in the table, as `{row}`. Add this row."
        if minutes > most:
            yield (
                f"title: its {kind} takes {minutes} minutes; expected at most {most}. "
                "Move an exercise, or cut one."
            )
    yield from _against_tasks(notebook, lab)


def _against_tasks(notebook: NotebookNode, lab: Lab) -> Iterator[str]:
    """Compare each cell that gives points with the heading above it."""
    tasks = {task.id: task for task in lab.tasks}
    above: Exercise | None = None
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            above = next(iter(headings(NotebookNode(cells=[cell]))), above)
        marks = cell.metadata.get("nbgrader", {})
        if not marks.get("points"):
            continue
        name, task = marks["grade_id"], tasks.get(marks["grade_id"])
        kind = "stretch" if task is not None and task.stretch else "core"
        if above is None or (above.kind, above.points) != (kind, marks["points"]):
            got = "no heading" if above is None else f"{above.kind}, {above.points:g} points"
            yield (
                f"cell {name}: it is {kind} and gives {marks['points']:g} points, but the heading "
                f"above it says {got}. Change the heading, or the task's `stretch` and points."
            )


def _without_kind(notebook: NotebookNode) -> Iterator[str]:
    for cell in notebook.cells:
        for line in cell.source.splitlines() if cell.cell_type == "markdown" else ():
            if _ANY_HEADING.match(line) and not _HEADING.match(line):
                yield (
                    f"heading {line!r}: expected it to end in `(core, 3 points, 15 minutes)` or "
                    "`(stretch, ...)`, with `, GPU` behind the minutes if it needs one. Add it."
                )


def _exercise(match: re.Match[str]) -> Exercise:
    return Exercise(
        number=match["number"],
        title=match["title"],
        kind=match["kind"],
        minutes=int(match["minutes"]),
        points=float(match["points"]),
    )


def _title(notebook: NotebookNode) -> str:
    """The text of the title cell; empty if there is none."""
    ids = ((cell.metadata.get("nbgrader", {}).get("grade_id", ""), cell) for cell in notebook.cells)
    return next((str(cell.source) for name, cell in ids if name.endswith("-title")), "")


def _differing(some: Sequence[Exercise], others: Sequence[Exercise]) -> str:
    texts = [
        f"`{e.number} {e.title}` ({e.kind}, {e.minutes} minutes, {e.points:g} points)"
        for e in some
        if e not in others
    ]
    return ", ".join(texts) or ("the same in another order" if some and others else "nothing more")
