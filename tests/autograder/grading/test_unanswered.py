"""A text answer left as released earns 0 automatically; any other waits for manual grading."""

import copy
import json
from typing import Any

import pytest

from autograder.grading.unanswered import NO_ANSWER, unanswered
from autograder.notebooks.intake import take_in
from tests.autograder.small_class import EXPLAIN
from tests.autograder.small_release import LAB, markdown, own, release
from tests.grading import cell_of

Notebook = dict[str, Any]


def verdicts(notebook: Notebook) -> list[tuple[str, str, float, float, str]]:
    """The automatic points of a submission, after the usual path of every submission."""
    raw = json.dumps(notebook).encode()
    restored = take_in("ada", LAB, raw, release()).notebook
    return [
        (v.task, v.status, v.points, v.max_points, v.message)
        for v in unanswered(restored, release())
    ]


NOTHING = [(EXPLAIN, "unanswered", 0.0, 2.0, NO_ANSWER)]


def answered(text: str) -> Notebook:
    notebook = release()
    cell_of(notebook, EXPLAIN)["source"] = text
    return notebook


def with_cells(*cells: Notebook, at: int | None = None) -> Notebook:
    notebook = release()
    place = len(notebook["cells"]) if at is None else at
    notebook["cells"][place:place] = cells
    return notebook


def without_answer(*cells: Notebook) -> Notebook:
    notebook = release()
    notebook["cells"] = [c for c in notebook["cells"] if c["id"] != EXPLAIN] + list(cells)
    return notebook


@pytest.mark.parametrize(
    "notebook",
    [
        release(),
        answered("YOUR ANSWER HERE  \n"),
        answered(""),
        answered(" \n\t"),
        with_cells(own("blank", "  ")),
        with_cells(markdown("note", "A note on the title."), at=1),
        without_answer(),
        without_answer(own("scratch", "print(1)")),
    ],
    ids=["released", "blanks", "emptied", "space", "blank", "far", "deleted", "code"],
)
def test_nothing_was_written(notebook: Notebook) -> None:
    assert verdicts(notebook) == NOTHING


@pytest.mark.parametrize(
    "notebook",
    [
        answered("YOUR ANSWER HERE: they are averaged."),
        with_cells(markdown("mine", "They are averaged.")),
        with_cells(own("mine", "# They are averaged."), at=-1),
        without_answer(markdown("mine", "They are averaged.")),
    ],
    ids=["edited", "below", "above", "elsewhere"],
)
def test_what_may_be_an_answer_waits_for_the_instructor(notebook: Notebook) -> None:
    assert verdicts(notebook) == []


def test_a_picture_in_the_cell_is_an_answer() -> None:
    notebook = copy.deepcopy(release())
    cell_of(notebook, EXPLAIN)["attachments"] = {"a.png": {"image/png": "AAAA"}}
    assert verdicts(notebook) == []


def test_an_answer_to_a_question_without_points_is_no_verdict() -> None:
    given = release()
    cell_of(given, EXPLAIN)["metadata"]["nbgrader"] |= {"points": 0}
    raw = json.dumps(given).encode()
    assert unanswered(take_in("ada", LAB, raw, given).notebook, given) == []
