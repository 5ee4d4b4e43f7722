"""Calculators in a real browser: the delay from key to screen, and a lecture page's load time.

Run as `python -m benchmarks.calculators` in the course's folder. Pages are served as
`course.py lecture` serves them. Changes are timed in the page, from the key press or click to the
frame that shows the new text or picture. A change goes through the browser, the kernel and back, so
measure on an otherwise idle machine.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from playwright.sync_api import Browser, Page, sync_playwright

from peakmem.show import widgets

__all__ = ["main", "measure_changes", "percentile"]

_CHANGES = 30
_PAUSE_MS = 250  # between two changes
_PATIENCE_MS = 60_000  # the largest models take seconds
_LIMIT_MS = 80
_PAINT_LIMIT_S = 2.0
_CHROMIUM = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking"

# Records, for each key or click, when the first new text and the first new picture were painted.
_WATCH = """calculator => {
  window.painted = {text: [], picture: []};
  let began = 0, seen = {};
  const begin = () => { began = performance.now(); seen = {}; };
  calculator.addEventListener("keydown", begin, true);
  calculator.addEventListener("pointerdown", begin, true);
  new MutationObserver(changes => {
    for (const change of changes) {
      const shown = change.target.closest?.(".widget-html");
      if (!began || !shown) continue;
      const kind = shown.querySelector("svg") ? "picture" : "text";
      if (seen[kind]) continue;
      seen[kind] = true;
      const start = began;
      requestAnimationFrame(() => window.painted[kind].push(performance.now() - start));
    }
  }).observe(calculator, {childList: true, subtree: true});
}"""

_TEXT_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


class Delay(NamedTuple):
    """Milliseconds from a change to the screen, for each change that was seen."""

    calculator: str
    #: What was changed: a "slider", a "bit" or a "list", such as the list of models.
    control: str
    kind: str
    milliseconds: list[float]

    @property
    def p95(self) -> float:
        """The 95th percentile."""
        return percentile(self.milliseconds, 95)


def percentile(values: list[float], percent: int) -> float:
    """Return the smallest value that this percentage of the values don't exceed.

    >>> percentile([3.0, 1.0, 2.0, 4.0], 50), percentile([1.0] * 19 + [9.0], 95)
    (2.0, 1.0)
    """
    ordered = sorted(values)
    return ordered[max(-(-len(ordered) * percent // 100) - 1, 0)]


def measure_changes(browser: Browser, root: Path, changes: int = _CHANGES) -> list[Delay]:
    """Press keys in each calculator's slider and list, or click a bit; time text and picture."""
    names = widgets.__all__
    cells = [
        nbformat.v4.new_code_cell(f"from peakmem.show import widgets\nwidgets.{n}()") for n in names
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        notebook = Path(folder) / "calculators.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), notebook)
        with _served(root, notebook) as address, contextlib.closing(browser.new_page()) as page:
            page.goto(address)
            page.locator(".peakmem-calculator").nth(len(names) - 1).wait_for()
            page.wait_for_timeout(3000)  # wait until slower results have arrived
            for place, name in enumerate(names):
                found += _one(page, place, name, changes)
    return found


def _one(page: Page, place: int, name: str, changes: int) -> list[Delay]:
    calculator = page.locator(".peakmem-calculator").nth(place)
    bit, slider = calculator.locator(".peakmem-bit-3"), calculator.locator(".noUi-handle").first
    choices = calculator.locator("select").first
    # Each entry of a list only once, because predictions are cached.
    entries = min(changes, choices.evaluate("list => list.length - 1 - list.selectedIndex"))
    keys = ("ArrowRight", "ArrowLeft")
    acts = {
        "slider": [partial(slider.press, keys[n % 2]) for n in range(changes)],
        "list": [partial(choices.press, "ArrowDown")] * entries,
    }
    if name == "float_explorer":
        acts = {"bit": [partial(bit.click)] * changes}
    if name == "adam_state":  # its other view depends on neither the batch nor the model
        calculator.get_by_role("button", name="one step").click()
        page.wait_for_timeout(_PAUSE_MS)
    calculator.evaluate(_WATCH)
    found = []
    for control, each in acts.items():
        painted = _timed(page, each)
        found += [Delay(name, control, kind, times) for kind, times in painted.items() if times]
    return found


def _timed(page: Page, acts: Sequence[Callable[[], None]]) -> dict[str, list[float]]:
    """Do one action after another, each after the previous one has appeared on the screen."""
    page.evaluate("window.painted.text = []; window.painted.picture = []")
    seen = "painted.text.length + painted.picture.length"
    for act in acts:
        before = page.evaluate(seen)
        act()
        page.wait_for_function(f"before => {seen} > before", arg=before, timeout=_PATIENCE_MS)
        page.wait_for_timeout(_PAUSE_MS)
    painted: dict[str, list[float]] = page.evaluate("window.painted")
    return painted


def measure_first_paint(browser: Browser, root: Path, lecture: Path) -> tuple[float, float]:
    """Return the seconds from requesting a lecture's page to its text and first calculator."""
    with _served(root, lecture) as address, contextlib.closing(browser.new_page()) as page:
        time.sleep(3)  # lecturers start the server before class
        started = time.perf_counter()
        page.goto(address)
        page.locator(".peakmem-calculator").first.wait_for()
        calculator = time.perf_counter() - started
        return page.evaluate(_TEXT_PAINTED) / 1000, calculator


@contextlib.contextmanager
def _served(root: Path, notebook: Path) -> Iterator[str]:
    """Serve a notebook as course.py does, and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = _course(root).voila_arguments(notebook)
    environment = {**os.environ, "JUPYTER_PATH": str(root / "lectures" / "share")}
    server = subprocess.Popen(
        [sys.executable, "-m", "voila", *command, "--no-browser", f"--port={port}"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while server.poll() is None:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait()


def _course(root: Path) -> Any:
    spec = importlib.util.spec_from_file_location("course", root / "course.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["course"] = module
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Print the delays and the first paints; return 1 if a limit is exceeded."""
    root = Path.cwd()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_CHROMIUM.split())
        delays = measure_changes(browser, root)
        lectures = sorted((root / "lectures").glob("*.ipynb"))
        paints = {one.stem: measure_first_paint(browser, root, one) for one in lectures}
        browser.close()
    print(f"{'calculator':16} {'changed':8} {'seen':8} {'median':>9} {'95 %':>9}   changes")
    for delay in delays:
        middle = statistics.median(delay.milliseconds)
        times = f"{middle:6.0f} ms {delay.p95:6.0f} ms   {len(delay.milliseconds)}"
        print(f"{delay.calculator:16} {delay.control:8} {delay.kind:8} {times}")
    slow = [calculator for _, calculator in paints.values() if calculator > _PAINT_LIMIT_S]
    for kind in ("text", "picture"):
        every = [ms for delay in delays if delay.kind == kind for ms in delay.milliseconds]
        p95 = percentile(every, 95)
        slow += [p95] if p95 > _LIMIT_MS else []
        print(f"all calculators, {kind}: 95 % within {p95:.0f} ms (limit {_LIMIT_MS} ms)")
    for name, (text, calculator) in paints.items():
        print(
            f"{name}: text after {text:.1f} s, first calculator after {calculator:.1f} s "
            f"(limit {_PAINT_LIMIT_S:g} s)"
        )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
