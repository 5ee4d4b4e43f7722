"""Gives unanswered manual questions 0 points, so that no instructor has to read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from autograder.model.status import UNANSWERED
from autograder.model.task import Verdict
from autograder.notebooks.graded import marks_of
from autograder.notebooks.released import Released, plain, read_release
from autograder.notebooks.restore import DELETED

__all__ = ["NO_ANSWER", "unanswered"]

#: What the student reads.
NO_ANSWER = (
    "You wrote no answer here, so it earns no points. If you wrote it elsewhere in your notebook, "
    "tell your instructor."
)

Json = Mapping[str, Any]


def unanswered(notebook: Json, release_notebook: Json) -> list[Verdict]:
    """Return a verdict of 0 points for each manual answer that is missing from a submission.

    `notebook` is a submission's notebook after `restore`. An answer is missing if its cell is empty
    or as released. But if the student added text beside it, or deleted the cell and wrote text
    anywhere, that may be the answer, so an instructor has to look.
    """
    release = read_release(release_notebook).cells
    cells: Sequence[Json] = notebook["cells"]
    given = {plain(one.cell.source) for one in release} | {""}
    at = {marks_of(cell).get("grade_id"): place for place, cell in enumerate(cells)}
    return [
        Verdict(
            task=one.label,
            status=UNANSWERED,
            earned={"answer": 0.0},
            max_points=_points(one),
            message=NO_ANSWER,
        )
        for one in release
        if one.role == "answer" and _points(one) > 0
        if _is_blank(cells[at[one.label]], one)
        if not _has_text(_where_else(cells, at[one.label]), given)
    ]


def _points(released: Released) -> float:
    return float(marks_of(released.json).get("points", 0.0))


def _is_blank(cell: Json, released: Released) -> bool:
    return not cell.get("attachments") and plain(cell["source"]) in (
        "",
        plain(released.cell.source),
    )


def _where_else(cells: Sequence[Json], place: int) -> list[Json]:
    """The student's cells that may hold the answer instead."""
    if DELETED in cells[place]["metadata"]:
        return [cell for cell in cells if cell["cell_type"] != "code" and not marks_of(cell)]
    return [*_unmarked(reversed(cells[:place])), *_unmarked(cells[place + 1 :])]


def _unmarked(cells: Iterable[Json]) -> Iterable[Json]:
    """The cells up to the first that the lab marks as given, graded or an answer."""
    for cell in cells:
        if marks_of(cell):
            return
        yield cell


def _has_text(cells: Iterable[Json], given: set[str]) -> bool:
    return any(plain(cell["source"]) not in given for cell in cells)
