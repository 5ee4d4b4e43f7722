"""A student's first minutes: the lab opens, runs, and reports solved and unsolved exercises."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import nbformat
from playwright.sync_api import Page, expect

import course as course_module  # beside pyproject.toml
from tests.browser.conftest import JupyterLab

LAB = "lab01_formats"
SOLVED = "lab01-decode_fp32"
SOLUTION = '''def decode_fp32(bits: int) -> float:
    """Return the value of the fp32 number that these 32 bits hold."""
    sign = -1.0 if bits >> 31 else 1.0
    exponent = bits >> 23 & 0xFF
    fraction = bits & 0x7FFFFF
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * fraction * 2.0**-149
    return sign * (2**23 + fraction) * 2.0 ** (exponent - 150)
'''


class InstalledCourse(course_module.Course):
    """A course in a folder of its own, installed in the environment that runs the tests."""

    def __init__(self, root: Path, run: course_module.Run) -> None:
        super().__init__(root, run)
        self.venv = Path(sys.prefix)

    def is_set_up(self, test_tools: bool) -> bool:
        return True


def test_a_student_opens_runs_solves_and_validates(
    repository: Path, tmp_path: Path, jupyter: JupyterLab, page: Page
) -> None:
    root = tmp_path / "course"
    shutil.copytree(repository / "labs" / LAB, root / "labs" / LAB)
    arguments = ["lab", LAB, "--no-browser", "--port=0"]
    assert course_module.main(arguments, InstalledCourse(root, jupyter.run)) == 0

    page.goto(jupyter.address())
    page.get_by_role("heading", name="Lab 1: how numbers are stored").wait_for()
    run_all(page)
    # nbgrader's panel and menu are for instructors.
    expect(page.get_by_title("Nbgrader Create Assignment")).to_have_count(0)
    expect(page.get_by_role("menuitem", name="Nbgrader", exact=True)).to_have_count(0)
    solve(page)
    report = validate(page)

    cells = nbformat.read(root / "work" / LAB / f"{LAB}.ipynb", as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code), "no cell stopped the run"
    checks = {cell.id for cell in code if cell.id.endswith("-check")}
    failed = {cell.id for cell in code if any(out.output_type == "error" for out in cell.outputs)}
    assert failed == checks - {f"{SOLVED}-check"}, "stubs raise in self-checks only"
    reported = {cell.id for cell in code if squeezed(cell.source) in squeezed(report)}
    assert reported == failed, "Validate reports what is not solved, and nothing else"


def squeezed(text: str) -> str:
    """The text without white space, since a page adds its own."""
    return "".join(text.split())


def run_all(page: Page) -> None:
    page.get_by_text("| Idle").wait_for()  # without a kernel JupyterLab forgets what it should run
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    last = page.locator(".jp-CodeCell .jp-InputArea-prompt").last
    expect(last).to_have_text(re.compile(r"\[\d+\]:"))


def solve(page: Page) -> None:
    """Type the solution into its cell, run it and the self-check below, and see that pass."""
    stub = page.locator(".jp-InputArea").filter(has_text="def decode_fp32(bits: int)")
    stub.locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.insert_text(SOLUTION)
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    page.get_by_text("✔ 0xFF800001").wait_for()


def validate(page: Page) -> str:
    """Press nbgrader's Validate, which saves first, and return what it reports."""
    page.get_by_role("button", name="Validate").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Validation Results")
    report = dialog.text_content()
    dialog.get_by_role("button", name="Ok").click()
    return report or ""
