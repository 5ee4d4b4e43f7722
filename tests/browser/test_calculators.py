"""All calculators on a projector: legible from the last row, not cut off, in both themes."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import course as course_module  # beside pyproject.toml
from peakmem.show import widgets
from tests.browser.conftest import PATIENCE, JupyterLab, Voila
from tests.browser.test_student import InstalledCourse, run_all

_SIZE_PX = 18
_CONTRAST = 4.5  # WCAG 2, level AA, for text of any size
_SCREEN = {"width": 1280, "height": 720}
#: What JupyterLab's bars, without the list of files, leave of that screen for a cell's output.
_PANE = {"width": 1085, "height": 599}
# The right side once it is drawn; remedies and the button belong to views without a picture.
_DRAWN = (
    ".peakmem-right svg:visible, .peakmem-bits:visible, .peakmem-remedies:visible, "
    ".peakmem-right button:has-text('Look for cheap changes'):visible"
)

# Each text on the page with its size in pixels, its contrast with what is painted behind its
# middle, and whether its box cuts it off. What is disabled is exempt from contrast, as in WCAG.
_TEXTS = """calculator => {
  const rgba = text => {
    const found = text.match(/[\\d.]+/g);
    return found ? [...found.slice(0, 3).map(Number), Number(found[3] ?? 1)] : [0, 0, 0, 0];
  };
  const over = (top, under) => [0, 1, 2].map(n => top[n] * top[3] + under[n] * (1 - top[3]));
  const luminance = colour => {
    const [r, g, b] = colour.map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const paint = (element, from) => {
    const style = getComputedStyle(element);
    if (element instanceof SVGElement && element.tagName !== "svg") {
      return element.tagName === "text" || style.fill === "none" ? [0, 0, 0, 0] : rgba(style.fill);
    }
    return rgba(style.backgroundColor);
  };
  const behind = box => {
    const layers = document
      .elementsFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2)
      .map(paint);
    const last = layers.findIndex(layer => layer[3] === 1);
    let colour = [255, 255, 255];
    for (const layer of layers.slice(0, last + 1 || undefined).reverse()) {
      colour = over(layer, colour);
    }
    return colour;
  };
  const found = [];
  const note = (element, words, box, ink, opacity, cut) => {
    const svg = element.closest("svg");
    const scale = svg ? element.getScreenCTM().a : 1;
    const ground = behind(box);
    const top = [...ink.slice(0, 3), ink[3] * opacity];
    const off = element.closest(":disabled, [disabled], .jupyter-widgets-disabled");
    found.push({
      words: words.trim().slice(0, 40),
      size: parseFloat(getComputedStyle(element).fontSize) * scale,
      contrast: off ? 21 : contrast(over(top, ground), ground),
      cut,
    });
  };
  const texts = document.createTreeWalker(calculator, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    const box = range.getClientRects()[0];
    if (!box || !texts.currentNode.data.trim() || element.closest("style, title, option")) continue;
    const style = getComputedStyle(element);
    const ink = rgba(element.closest("svg") ? style.fill : style.color);
    const label = element.closest(".widget-label, .jupyter-button");
    const cut = label !== null && label.scrollWidth > label.clientWidth + 1;
    note(element, texts.currentNode.data, box, ink, Number(style.opacity), cut);
  }
  for (const field of calculator.querySelectorAll("input:not([type=checkbox]), select")) {
    const box = field.getBoundingClientRect();
    if (!box.width) continue;
    const empty = field.tagName === "INPUT" && !field.value;
    const style = getComputedStyle(field, empty ? "::placeholder" : undefined);
    const words = empty ? field.placeholder : field.value;
    if (words) note(field, words, box, rgba(style.color), Number(style.opacity), false);
  }
  return found;
}"""


class Seen(NamedTuple):
    """A calculator on the screen: its box, its parts' places, and each text in it."""

    height: float
    beside: bool
    texts: list[dict[str, Any]]

    def faults(self) -> list[str]:
        """Return the faults for a lecture hall."""
        found = [] if self.height <= _SCREEN["height"] else [f"it is {self.height:.0f} px high"]
        if not self.beside:
            found.append("the picture is not beside the controls")
        for text in self.texts:
            words = repr(text["words"])
            if text["size"] < _SIZE_PX:
                found.append(f"{words} has {text['size']:.1f} px")
            if text["contrast"] < _CONTRAST:
                found.append(f"{words} has a contrast of {text['contrast']:.1f}")
            if text["cut"]:
                found.append(f"{words} is cut off")
        return found


def look_at(calculator: Locator) -> Seen:
    """Scroll to a calculator and measure it."""
    calculator.evaluate("one => one.scrollIntoView()")
    height = calculator.evaluate("one => one.getBoundingClientRect().height")
    beside = calculator.evaluate(
        """one => one.querySelector(".peakmem-right").getBoundingClientRect().left
             >= one.querySelector(".peakmem-left").getBoundingClientRect().right"""
    )
    return Seen(height, beside, calculator.evaluate(_TEXTS))


def faults_with_a_guess(calculator: Locator) -> list[str]:
    """Return the faults of a calculator that asks, of the one that answers, and of each view."""
    found = look_at(calculator).faults()
    for place, number in enumerate(("12", "1200")):
        calculator.locator(".peakmem-guess input").nth(place).fill(number)
    calculator.get_by_role("button", name="Show the answer").click()
    calculator.get_by_text(re.compile("You said")).wait_for()
    calculator.locator(_DRAWN).first.wait_for()
    found += look_at(calculator).faults()
    for button in calculator.locator(".widget-toggle-buttons button").all()[1:]:
        button.click()
        active = calculator.locator(".widget-toggle-buttons .mod-active")
        active.filter(has_text=button.inner_text()).wait_for()
        calculator.locator(_DRAWN).first.wait_for()
        found += look_at(calculator).faults()
    return found


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of all calculators, each of which asks for a guess."""
    path = tmp_path_factory.mktemp("calculators") / "calculators.ipynb"
    cells = [
        nbformat.v4.new_code_cell(f"from peakmem.show import widgets\nwidgets.{name}(predict=True)")
        for name in widgets.__all__
    ]
    page = nbformat.v4.new_notebook(cells=cells)
    page.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(page, path)  # without a kernel named, JupyterLab asks for one
    return path


@pytest.fixture
def served(repository: Path, voila: Voila, notebook: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where that page is served as a lecture is."""
    monkeypatch.setenv("JUPYTER_PATH", str(repository / "lectures" / "share"))
    command = InstalledCourse(repository, voila.run)
    arguments = [*course_module.voila_arguments(notebook), "--no-browser", f"--port={voila.port}"]
    command.module("voila", *arguments)
    return voila.address()


@pytest.fixture
def hall(browser: Browser) -> Iterator[Page]:
    """A browser on a projector."""
    page = browser.new_page(viewport=_SCREEN)  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE)
    yield page
    page.close()


def calculators(page: Page, address: str, theme: str) -> list[Locator]:
    """Open the page in a theme, and wait until all its calculators are there."""
    page.goto(f"{address}?theme={theme}")
    found = page.locator(".peakmem-calculator")
    last = found.nth(len(widgets.__all__) - 1).locator(".peakmem-guess").first
    missing = page.get_by_text("Error displaying widget")
    last.or_(missing).first.wait_for()
    assert missing.count() == 0, "a widget's model was not found"
    return found.all()


def is_dark(page: Page) -> bool:
    ground = page.evaluate("getComputedStyle(document.body).getPropertyValue('--jp-layout-color0')")
    return ground.strip() in ("#111111", "#111")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_calculator_serves_the_last_row(served: str, hall: Page, theme: str) -> None:
    found = calculators(hall, served, theme)
    assert is_dark(hall) == (theme == "dark"), "the theme is there"
    faults = {
        name: said
        for name, calculator in zip(widgets.__all__, found, strict=True)
        if (said := faults_with_a_guess(calculator))
    }
    assert faults == {}


def test_all_of_a_calculator_is_in_view_in_a_notebook_on_a_projector(
    served: str, hall: Page
) -> None:
    found = calculators(hall, served, "light")
    wide = found[0].evaluate("one => one.getBoundingClientRect().width")
    margins = _SCREEN["width"] - round(wide)
    hall.set_viewport_size({"width": margins + _PANE["width"], "height": _PANE["height"]})
    faults = {}
    for name, calculator in zip(widgets.__all__, found, strict=True):
        for place, number in enumerate(("12", "1200")):
            calculator.locator(".peakmem-guess input").nth(place).fill(number)
        calculator.get_by_role("button", name="Show the answer").click()
        calculator.locator(_DRAWN).first.wait_for()
        seen = look_at(calculator)
        if said := [*seen.faults(), *["it is too high"] * (seen.height > _PANE["height"])]:
            faults[name] = said
    assert faults == {}


# A change of the page -> the fault that it makes.
SPOILED = {
    ".widget-label { font-size: 17px !important }": "has 17.0 px",
    ".peakmem-left { min-height: 721px }": "px high",
    ".peakmem-sides { flex-direction: column !important }": "the picture is not beside",
    ".widget-html-content { color: #8a8a8a !important }": "has a contrast of 3",
    ".jupyter-button { background: #444 !important; color: #777 !important }": "has a contrast of",
    "svg rect { fill: #333 !important }": "has a contrast of 1.",
    ".widget-inline-hbox > .widget-label { width: 20px !important }": "is cut off",
    "svg { max-width: 400px !important }": "has 11.7 px",
}


def test_each_fault_would_be_seen(served: str, hall: Page) -> None:
    swap = calculators(hall, served, "light")[widgets.__all__.index("swap")]
    assert faults_with_a_guess(swap) == []
    for rule, fault in SPOILED.items():
        style = hall.add_style_tag(content=rule)
        assert any(fault in said for said in look_at(swap).faults()), rule
        style.evaluate("one => one.remove()")
    assert look_at(swap).faults() == []


# All cells of a notebook are on the page, and JupyterLab asks for no news.
_DARK_LAB = {
    "@jupyterlab/apputils-extension:themes": {"theme": "JupyterLab Dark"},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}


@pytest.mark.slow
def test_every_calculator_is_legible_in_a_dark_jupyterlab(
    tmp_path: Path, notebook: Path, jupyter: JupyterLab, hall: Page
) -> None:
    (tmp_path / "overrides.json").write_text(json.dumps(_DARK_LAB), encoding="ascii")
    arguments = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--port=0"]
    if os.name != "nt" and os.geteuid() == 0:
        arguments.append("--allow-root")
    arguments += [f"--LabApp.app_settings_dir={tmp_path}"]
    arguments += [f"--LabApp.default_url=/lab/tree/{notebook.name}"]
    jupyter.run(arguments, notebook.parent)
    expect.set_options(timeout=PATIENCE)
    hall.set_viewport_size({"width": 1600, "height": 1200})  # all of it is in view
    hall.goto(jupyter.address())
    run_all(hall)
    hall.keyboard.press("ControlOrMeta+B")  # the list of files gives its room to the notebook
    found = hall.locator(".peakmem-calculator")
    expect(found).to_have_count(len(widgets.__all__))
    assert is_dark(hall), "the theme is there"
    faults = {
        name: pale
        for name, calculator in zip(widgets.__all__, found.all(), strict=True)
        if (pale := [said for said in faults_with_a_guess(calculator) if "contrast" in said])
    }
    assert faults == {}
    hall.add_style_tag(content=".widget-html-content { color: #222222 !important }")
    assert any("contrast" in said for said in look_at(found.first).faults())
