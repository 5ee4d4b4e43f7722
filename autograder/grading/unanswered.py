"""Manual answers that nobody wrote: they earn 0 points, and no instructor has to read them."""

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
    "No answer was written here, so it earns no points. If you wrote it elsewhere in your "
    "notebook, tell your instructor."
)

Json = Mapping[str, Any]


def unanswered(notebook: Json, release_notebook: Json) -> list[Verdict]:
    """Return a verdict of 0 points for each manual answer that is missing from a submission.

    `notebook` is a submission's as `restore` leaves it. Its cell is empty or as it was released.
    Where the student added something beside it, or deleted the cell and wrote text anywhere, that
    may be the answer, and an instructor has to look.
    """
    release = read_release(release_notebook).cells
    cells: Sequence[Json] = notebook["cells"]
    given = {plain(one.cell.source) for one in release} | {""}
    at = {marks_of(cell).get("grade_id"): place for place, cell in enumerate(cells)}
    return [
        Verdict(one.label, UNANSWERED, {"answer": 0.0}, _points(one), NO_ANSWER)
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
    """The student's cells in which the answer may stand instead."""
    if DELETED in cells[place]["metadata"]:
        return [cell for cell in cells if cell["cell_type"] != "code" and not marks_of(cell)]
    return [*_unmarked(reversed(cells[:place])), *_unmarked(cells[place + 1 :])]


def _unmarked(cells: Iterable[Json]) -> Iterable[Json]:
    """The cells up to the first that the lab marks as given, graded or to be answered."""
    for cell in cells:
        if marks_of(cell):
            return
        yield cell


def _has_text(cells: Iterable[Json], given: set[str]) -> bool:
    return any(plain(cell["source"]) not in given for cell in cells)
