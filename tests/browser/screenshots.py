"""Retakes the screenshots in docs/images, so that they show the course as it is.

Run as `python -m tests.browser.screenshots` in the course's folder, in `.venv` once
`course.py test` has installed the tools of the tests. It needs Chromium and the sandbox.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect, sync_playwright

import course as course_module  # beside pyproject.toml
from tests.browser.conftest import PATIENCE, JupyterLab, Voila
from tests.browser.test_student import InstalledCourse, run_all
from tests.conftest import launch_chromium

_ROOT = Path(__file__).resolve().parents[2]
_IMAGES = _ROOT / "docs" / "images"
_LAB = "lab01_formats"
_EXERCISE = "1.2 Fixed point"
_STUDENT = "s005"  # of the class that is sampled here: points won, lost and waiting
_MARGIN_PX = 12
_CALCULATORS = {"memory": "", "checkpointing": "shown.step = 23"}


def take_calculators(browser: Browser, home: Path) -> None:
    """Photograph each calculator under Voila, as a lecture shows it."""
    home.mkdir()
    notebook = home / "calculators.ipynb"
    cells = [
        nbformat.v4.new_code_cell(
            f"from peakmem.show import widgets\nshown = widgets.{name}()\n{change}\nshown"
        )
        for name, change in _CALCULATORS.items()
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), notebook)
    os.environ["JUPYTER_PATH"] = str(_ROOT / "lectures" / "share")
    voila = Voila(home / "voila")
    arguments = [*course_module.voila_arguments(notebook), "--no-browser", f"--port={voila.port}"]
    InstalledCourse(_ROOT, voila.run).module("voila", *arguments)
    with _stopped(voila), _page(browser) as page:
        page.goto(voila.address())
        found = page.locator(".peakmem-calculator")
        for place, name in enumerate(_CALCULATORS):
            found.nth(place).locator("svg:visible").last.wait_for()
            _save(page, name, _around(found.nth(place)))


def take_lab(browser: Browser, home: Path) -> None:
    """Photograph an exercise in JupyterLab after Run All, before anybody solves it."""
    shutil.copytree(_ROOT / "labs" / _LAB, home / "labs" / _LAB)
    jupyter = JupyterLab(home / "jupyter")
    course = InstalledCourse(home, jupyter.run)
    with _stopped(jupyter), _page(browser) as page:
        course_module.main(["lab", _LAB, "--no-browser", "--port=0"], course)
        page.goto(jupyter.address())
        run_all(page)
        page.keyboard.press("ControlOrMeta+B")  # the list of files gives its room to the lab
        for _ in range(2):  # what comes into view grows, and moves the heading once
            heading = page.get_by_role("heading", name=_EXERCISE)
            heading.evaluate("one => one.scrollIntoView()")
            page.wait_for_timeout(2000)
        _save(page, "lab")


def take_feedback(browser: Browser, home: Path) -> None:
    """Photograph the top of a feedback page, graded for this."""
    grader = [sys.executable, "-m", "autograder"]
    sampled, out = home / "class", home / "graded"
    subprocess.run([*grader, "sample", _LAB, "--students", "6", "--out", sampled], check=True)
    where = ["--submitted", sampled / "submitted", "--out", out]
    subprocess.run([*grader, "grade", _LAB, *where], check=True)
    with _page(browser, width=1000) as page:
        page.goto((out / "feedback" / _STUDENT / f"{_LAB}.html").as_uri())
        _save(page, "feedback")


def _around(shown: Locator) -> FloatRect:
    """The box of what is shown, with a margin."""
    shown.scroll_into_view_if_needed()
    box = shown.bounding_box()
    assert box is not None, "it is in view"
    wide, high = box["width"] + 2 * _MARGIN_PX, box["height"] + 2 * _MARGIN_PX
    return {"x": box["x"] - _MARGIN_PX, "y": box["y"] - _MARGIN_PX, "width": wide, "height": high}


def _save(page: Page, name: str, clip: FloatRect | None = None) -> None:
    path = _IMAGES / f"{name}.png"
    page.screenshot(path=path, clip=clip)
    print(path.relative_to(_ROOT))


@contextlib.contextmanager
def _page(browser: Browser, width: int = 1280) -> Iterator[Page]:
    with contextlib.closing(browser.new_page(viewport={"width": width, "height": 800})) as page:
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        yield page


@contextlib.contextmanager
def _stopped(server: JupyterLab) -> Iterator[None]:
    """Stop a server at the end, whatever happens."""
    try:
        yield
    finally:
        server.stop()


def main() -> None:
    """Take all screenshots."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        take_calculators(browser, Path(folder, "calculators"))
        take_lab(browser, Path(folder, "lab"))
        take_feedback(browser, Path(folder, "feedback"))
        browser.close()


if __name__ == "__main__":
    main()
