"""An instructor edits a lab with nbgrader's Create Assignment panel, and pulls the edits."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Page, expect

from autograder.authoring.build import build, check
from autograder.base.course import Course
from autograder.cli.app import main
from tests.browser.conftest import JupyterLab

LAB = "lab05_accumulation"
TASK = "lab05-largest_micro_batch"


@pytest.fixture
def course(repository: Path, tmp_path: Path) -> Path:
    root = tmp_path / "course"
    (root / "solutions").mkdir(parents=True)
    shutil.copy(repository / "nbgrader_config.py", root)
    shutil.copy(repository / "solutions" / f"{LAB}.py", root / "solutions")
    build(Course(root))
    return root


def test_edits_in_the_browser_are_pulled(
    course: Path, jupyter: JupyterLab, page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    source = course / "solutions" / f"{LAB}.py"
    notebook = course / "solutions" / LAB / f"{LAB}.ipynb"
    before = source.read_text()
    pull = ["--course", str(course), "build", "--pull", LAB]
    open_notebook(course, jupyter, page)
    cells = [cell.id for cell in nbformat.read(notebook, as_version=4).cells]

    set_points(page, cells.index(TASK), 5)
    append_text(page, "A batch that does not fit", " Bring paper.")
    save(page)
    assert main(pull) == 2, "this exercise's points are its task's"
    assert f"cell {TASK}: expected points 4, but it is 5" in capsys.readouterr().err
    assert source.read_text() == before

    set_points(page, cells.index(TASK), 4)
    save(page)
    assert main(pull) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{LAB}:",
        "  lab05-too-large-about: text -1 +1 lines",
    ]
    changed = [
        line
        for line in difflib.ndiff(before.splitlines(), source.read_text().splitlines())
        if line[0] in "+-"
    ]
    assert [line[0] for line in changed] == ["-", "+"]
    assert changed[1].endswith("as a full GPU does. Bring paper.")
    assert main(["--course", str(course), "build"]) == 0
    assert check(Course(course)) == []


def open_notebook(course: Path, jupyter: JupyterLab, page: Page) -> None:
    """Start JupyterLab in the course's folder, with the lab and the panel open."""
    arguments = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--port=0"]
    if os.name != "nt" and os.geteuid() == 0:
        arguments.append("--allow-root")
    jupyter.run([*arguments, f"--LabApp.default_url=/lab/tree/solutions/{LAB}/{LAB}.ipynb"], course)
    page.goto(jupyter.address())
    page.get_by_role("heading", name="Lab 5: gradient accumulation").wait_for()
    page.get_by_role("tab", name="Create Assignment").click()
    page.locator(".nbgrader-NotebookWidget").wait_for()


def set_points(page: Page, place: int, points: int) -> None:
    """Change the points of the cell at `place` in the panel."""
    field = page.locator(".nbgrader-CellWidget").nth(place).locator(".nbgrader-CellPoints input")
    field.fill(str(points))
    field.press("Enter")
    expect(field).to_have_value(str(points))


def append_text(page: Page, heading: str, text: str) -> None:
    """Type at the end of the text cell that has this heading."""
    page.get_by_role("heading", name=heading).click()
    page.keyboard.press("Enter")
    page.locator(".jp-Notebook.jp-mod-editMode .jp-mod-active .cm-content:focus").wait_for()
    page.keyboard.press("ControlOrMeta+End")
    page.keyboard.type(text)
    page.keyboard.press("Shift+Enter")


def save(page: Page) -> None:
    page.keyboard.press("ControlOrMeta+S")
    page.locator(".lm-TabBar-tab.lm-mod-current:not(.jp-mod-dirty)", has_text=LAB).wait_for()
