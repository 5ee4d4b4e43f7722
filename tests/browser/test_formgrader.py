"""An instructor opens Formgrader with the command, grades a text answer, and exports it."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import JupyterLab
from tests.grading import LAB05, SEARCH, Class, command_environment, course_copy, solved

EXPLAIN = "lab05-explain"

pytestmark = pytest.mark.sandbox


@pytest.fixture
def room(tmp_path: Path) -> Class:
    """A class of one, graded; its text answer waits for manual grading."""
    folder = tmp_path / "a class, 100 % #1"
    folder.mkdir()
    room = Class(folder, course_copy(tmp_path / "course"))
    room.hand_in("ada", solved())
    done = room.grade("--workers", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    return room


def test_an_answer_in_words_is_graded_and_arrives_in_the_export(
    room: Class,
    jupyter: JupyterLab,
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no environment is activated
    command = [sys.executable, "-m", "autograder", "formgrade", str(room.out)]
    jupyter.run([*command, "--no-browser", "--port=0"], tmp_path)
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(600_000)
    page.goto(jupyter.address())
    page.get_by_role("link", name="Manual Grading").click()
    page.get_by_role("link", name=LAB05).click()
    page.get_by_role("link", name=LAB05, exact=True).last.click()
    page.get_by_role("link", name="Submission #1").click()

    page.locator(f"input.score#{EXPLAIN}").wait_for()
    comment = page.locator(f"textarea#{SEARCH}-solution-comment")
    expect(comment).to_have_attribute("placeholder", "4 of 4 points. Right.")
    page.locator(f"input.score#{EXPLAIN}").fill("1.5")
    with page.expect_response(lambda r: "/api/grade/" in r.url and r.request.method == "PUT"):
        page.locator(f"input.score#{EXPLAIN}").blur()
    page.close()

    export = [sys.executable, "-m", "autograder", "--course", str(room.course), "export"]
    done = subprocess.run(
        [*export, str(room.out)], env=command_environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with (room.out / "export" / "students.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert "22.5" in row.values(), row
    assert "1.5 of 2" in room.page("ada")
