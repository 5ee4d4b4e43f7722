"""Title, headings and tasks of a lab agree on core and stretch, and its prose stays short."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.authoring.length import Length, length_of, length_table, length_violations
from autograder.authoring.outline import headings, outline_violations
from autograder.cli import app
from tests.autograder.small_lab import SMALL_LAB, task

REPOSITORY = Path(__file__).resolve().parents[3]
DOUBLE, HALVE = task("double", 8), replace(task("halve", 2), stretch=True)
LAB = replace(SMALL_LAB, tasks=(DOUBLE, HALVE))
TITLE = """# A lab
| exercise | | minutes | points |
|---|---|---|---|
| 5.1 Double (it) | core | 20 | 2 |
| 5.2 Halve | stretch | 15 | 2 |
| **core** | | **20** | **2** |
| **stretch** | | **15** | **2** |"""


def notebook_of(**changes: str):
    """A lab of two exercises, with `changes` to the texts of its cells."""
    texts = {
        "title": TITLE,
        "double": "## 5.1 Double (it) (core, 2 points, 20 minutes)\nTwice as much.",
        "halve": "## 5.2 Halve (stretch, 2 points, 15 minutes, GPU)",
    } | changes
    cells = [new_markdown_cell(texts["title"])]
    cells[0].metadata["nbgrader"] = {"grade_id": "lab05-title"}
    for name in ("double", "halve"):
        cells += [new_markdown_cell(texts[name]), new_code_cell("score()")]
        cells[-1].metadata["nbgrader"] = {"grade_id": f"lab05-{name}", "points": 2}
    return new_notebook(cells=cells)


def test_where_all_agree_nothing_is_found() -> None:
    notebook = notebook_of()
    assert [*outline_violations(notebook, LAB)] == []
    assert [(e.number, e.kind, e.minutes) for e in headings(notebook)] == [
        ("5.1", "core", 20),
        ("5.2", "stretch", 15),
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"title": TITLE.replace("| core | 20", "| core | 25")}, "title: its table has"),
        ({"title": TITLE.replace("| stretch | 15", "| core | 15")}, "title: its table has"),
        ({"title": TITLE.replace("**20**", "**25**")}, r"sums of its core.*\*\*20\*\*"),
        ({"title": TITLE.replace("**15**", "**25**")}, "sums of its stretch"),
        ({"double": "## 5.1 Double (it) (2 points, 20 minutes)"}, "expected it to end in"),
        ({"double": "## 5.1 Double (it) (core, 3 points, 20 minutes)"}, "cell lab05-double: it is"),
        ({"halve": "## 5.2 Halve (core, 2 points, 15 minutes)"}, "cell lab05-halve: it is stretch"),
        ({"double": "## 5.1 Double (it) (core, 2 points, 76 minutes)"}, "core takes 76 minutes"),
        ({"halve": "## 5.2 Halve (stretch, 2 points, 46 minutes)"}, "stretch takes 46 minutes"),
    ],
)
def test_each_disagreement_is_said(changes: dict[str, str], said: str) -> None:
    found = "\n".join(outline_violations(notebook_of(**changes), LAB))
    assert re.search(said, found), found


def test_prose_is_counted_without_code_and_solutions_without_comments() -> None:
    notebook = notebook_of(double="Three words here\n```python\nnot = these\n```\n$$ 1 + 2 $$")
    others = length_of(notebook_of(double="")).words
    notebook.cells.append(
        new_code_cell(
            "def f():\n    ### BEGIN SOLUTION\n    # why\n\n    x = 1\n    return x\n"
            "    ### END SOLUTION\nx = 3"
        )
    )
    length = length_of(notebook)
    assert (length.words - others, length.solution_lines) == (3, 2)


def test_too_long_prose_is_said_and_marked() -> None:
    wordy = notebook_of(double="word " * 2501)
    (too_many, too_dense) = length_violations(wordy)
    assert "2,5" in too_many
    assert "per line of solution" in too_dense
    table = length_table({"a": Length(3, 2501, 100, (0, 0), (0, 0)), "b": length_of(wordy)})
    assert [line.count("!") for line in table.splitlines()] == [0, 1, 2, 1]


def test_the_command_shows_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["--course", str(REPOSITORY), "build", "--stats", "lab05_accumulation"]) == 0
    assert "lab05_accumulation" in capsys.readouterr().out.splitlines()[1]
