"""Lectures in a real browser: under Voila, in JupyterLab, and as a still page without a network."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from voila.app import Voila as VoilaApp
from voila.execute import VoilaExecutor

import course as course_module  # beside pyproject.toml
from benchmarks.calculators import measure_changes
from peakmem.measure.generated_snapshot import Recording, frame
from peakmem.plan import every_k
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.simulator import simulate
from peakmem.show import widgets
from peakmem.show.widgets import checkpointing, mixed_precision
from peakmem.show.widgets.still_page import still_page
from tests.browser.conftest import JupyterLab, Voila, listen
from tests.browser.test_student import InstalledCourse, run_all

LECTURES = sorted((Path(__file__).parents[2] / "lectures").glob("*.ipynb"))
Open = Callable[[str], None]


@pytest.fixture
def open_lecture(
    repository: Path, voila: Voila, page: Page, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Open]:
    """Show a lecture as course.py does; a request to another machine fails the test."""
    monkeypatch.setenv("JUPYTER_PATH", "")  # course.py sets it for what it starts
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    home = (f"http://127.0.0.1:{voila.port}/", "data:", "blob:")

    def show(name: str) -> None:
        arguments = ["lecture", name, "--no-browser", f"--port={voila.port}"]
        assert course_module.main(arguments, InstalledCourse(repository, voila.run)) == 0
        page.goto(voila.address())

    yield show
    assert asked
    assert [url for url in asked if not url.startswith(home)] == []


def calculator(page: Page, place: int) -> Locator:
    return page.locator(".peakmem-calculator").nth(place)


def guess(on: Locator, number: str) -> None:
    """Enter a guess and ask for the answer, like a user."""
    on.locator(".peakmem-guess input").first.fill(number)
    on.get_by_role("button", name="Show the answer").click()


def slider(on: Locator, label: str) -> Locator:
    row = on.locator(".widget-inline-hbox", has=on.page.get_by_text(label, exact=True))
    return row.locator(".noUi-handle")


def test_a_lecture_answers_in_voila(open_lecture: Open, page: Page) -> None:
    open_lecture("lecture5")
    film, floats, mixed = (calculator(page, place) for place in (0, 4, 5))
    expect(film).to_contain_text("How many forwards run a second time?")
    expect(film.get_by_text("more time")).to_be_hidden()

    guess(film, "16")
    expect(film).to_contain_text("You said 16 forwards (1.33 times it); it is 12 forwards.")
    slider(film, "K, per segment").press("ArrowRight")
    chain = Chain((Stage(1, 2, 1, 1),) * 16)
    run = simulate(chain, every_k(chain, 5))
    expect(film).to_contain_text(f"it is {run.makespan - chain.work_time:g} forwards")
    expect(film).to_contain_text(f"{run.peak_bytes} stages' activations")

    guess(floats, "0.2")
    floats.locator(".peakmem-bit-31").click()
    expect(floats).to_contain_text("-0.15625 = -(2⁻³ + 2⁻⁵), exactly")
    number = floats.locator(".peakmem-number input")
    number.fill("0.1")
    number.press("Enter")
    expect(floats).to_contain_text("0x3dcccccd")
    number.fill("a tenth")
    number.press("Enter")
    expect(floats.get_by_role("alert")).to_contain_text("'a tenth' is not a number")

    guess(mixed, "20")
    mixed.locator("select").first.select_option("bf16")
    library = mixed_precision()
    library.format = "bf16"
    expect(mixed).to_contain_text("in bf16, scale 1")
    expect(mixed).to_contain_text(f"it is {library.answer().figure[0]:.4g} percent")  # type: ignore[index]
    mixed.get_by_role("button", name="Reset").click()
    expect(mixed.locator(".peakmem-guess input").first).to_have_value("")
    expect(mixed.get_by_text("in fp16, scale 1")).to_be_hidden()


def test_the_text_is_there_before_any_script_runs(open_lecture: Open, page: Page) -> None:
    page.route("**/voila.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    open_lecture("lecture2")
    expect(page.get_by_role("heading", name="Pipelines: who waits for whom")).to_be_visible()
    expect(page.locator("#loading")).to_be_hidden()
    expect(page.locator(".peakmem-calculator")).to_have_count(0)


def test_a_calculator_that_comes_late_is_shown(repository: Path) -> None:
    app = VoilaApp()
    app.parse_command_line(course_module.voila_arguments(repository))
    executor = VoilaExecutor(nbformat.v4.new_notebook(), config=app.config)
    assert executor.iopub_timeout == executor.startup_timeout == course_module.PATIENCE


def choose_file(on: Locator, path: Path) -> None:
    with on.page.expect_file_chooser() as chooser:
        on.get_by_role("button", name="Open a snapshot").click()
    chooser.value.set_files(path)


def test_a_snapshot_is_opened_in_a_lecture(open_lecture: Open, page: Page, tmp_path: Path) -> None:
    recording = Recording()
    recording.alloc("x", 3_000_000, frame("train.py", 7, "step"))
    (tmp_path / "mine.pickle").write_bytes(pickle.dumps(recording.snapshot()))
    (tmp_path / "weights.pickle").write_bytes(b"PK\x03\x04")
    open_lecture("lecture5")
    shown = calculator(page, 2)
    guess(shown, "60")
    expect(shown).to_contain_text("it is 64.3 percent")
    choose_file(shown, tmp_path / "weights.pickle")
    expect(shown.get_by_role("alert")).to_contain_text("weights.pickle is not a snapshot")
    choose_file(shown, tmp_path / "mine.pickle")
    expect(shown.locator(".peakmem-guess input").first).to_have_value("")
    guess(shown, "100")
    expect(shown).to_contain_text("3.00 MB (2.86 MiB)")
    expect(shown.get_by_role("alert")).to_have_count(0)
    shown.locator("select").nth(1).select_option("source line")
    expect(shown).to_contain_text("train.py:7")


def test_a_calculator_fits_a_phone(open_lecture: Open, page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 700})
    open_lecture("lecture1")
    memory = calculator(page, 0)
    guess(memory, "11")
    expect(memory).to_contain_text("peak, in backward")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_the_film_plays(open_lecture: Open, page: Page) -> None:
    open_lecture("lecture5")
    film = calculator(page, 0)
    guess(film, "12")
    expect(film).to_contain_text("step 1 of 44")
    film.locator(".widget-play button").first.click()
    expect(film).to_contain_text(re.compile(r"step ([4-9]|[1-4]\d) of 44"))


@pytest.mark.slow
@pytest.mark.parametrize("notebook", LECTURES, ids=lambda path: path.stem)
def test_every_calculator_of_a_lecture_answers(
    open_lecture: Open, page: Page, notebook: Path
) -> None:
    open_lecture(notebook.stem)
    wanted = len(re.findall(r"predict=True", notebook.read_text(encoding="utf-8")))
    asking = page.locator(".peakmem-calculator", has=page.locator(".peakmem-guess"))
    expect(asking).to_have_count(wanted)
    for place in range(wanted):
        on = asking.nth(place)
        guess(on, "10")
        expect(on).to_contain_text("You said 10")
        expect(on.locator("svg, .peakmem-number").first).to_be_visible()
        expect(on.get_by_role("alert")).to_have_count(0)


@pytest.mark.slow
def test_a_lecture_runs_in_jupyterlab(
    repository: Path, tmp_path: Path, jupyter: JupyterLab, page: Page
) -> None:
    (tmp_path / "work").mkdir()
    notebook = tmp_path / "work" / "lecture5.ipynb"
    notebook.write_bytes((repository / "lectures" / "lecture5_single_device.ipynb").read_bytes())
    arguments = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--port=0"]
    if os.name != "nt" and os.geteuid() == 0:
        arguments.append("--allow-root")
    arguments += [f"--ServerApp.root_dir={notebook.parent}"]
    jupyter.run([*arguments, "--LabApp.default_url=/lab/tree/lecture5.ipynb"], notebook.parent)
    page.goto(jupyter.address())
    page.get_by_role("heading", name="Lecture 5").wait_for()
    run_all(page)
    film = calculator(page, 0)
    film.scroll_into_view_if_needed()
    guess(film, "12")
    expect(film).to_contain_text("You said 12 forwards (1.00 times it); it is 12 forwards")
    slider(film, "K, per segment").press("ArrowLeft")
    chain = Chain((Stage(1, 2, 1, 1),) * 16)
    run = simulate(chain, every_k(chain, 3))
    expect(film).to_contain_text(f"it is {run.makespan - chain.work_time:g} forwards")


@pytest.mark.slow
def test_the_bench_sees_every_calculator_change(repository: Path, browser: Browser) -> None:
    delays = measure_changes(browser, repository, changes=4)
    assert {delay.calculator for delay in delays} == set(widgets.__all__)
    assert all(min(delay.milliseconds) > 0 for delay in delays)


def test_a_still_page_shows_its_last_state_without_a_network(
    browser: Browser, tmp_path: Path
) -> None:
    source = "from peakmem.show.widgets import checkpointing\n"
    source += "c = checkpointing(predict=True)\nc.step = 23\nc"
    cell = nbformat.v4.new_code_cell(source)
    (tmp_path / "still.html").write_text(
        still_page(nbformat.v4.new_notebook(cells=[cell])), encoding="utf-8"
    )
    context = browser.new_context(offline=True)
    page = context.new_page()
    complaints, asked = listen(page), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "still.html").as_uri())
    library = checkpointing()
    library.step = 23
    expect(page.get_by_text("12", exact=True)).to_be_visible()
    expect(page.locator("body")).to_contain_text("forward of stage 11 again, keeps all")
    expect(page.locator("body")).to_contain_text("step of the film: 23")
    pictures = page.locator("svg[role=img]")
    expect(pictures).to_have_count(2)
    assert pictures.first.get_attribute("aria-label") in library._picture.value
    assert pictures.first.bounding_box()["width"] > 300  # type: ignore[index]
    context.close()
    assert (complaints, len(asked)) == ([], 1)


@pytest.mark.parametrize("notebook", LECTURES, ids=lambda path: path.stem)
def test_a_lecture_is_clean_and_ready_for_slides(notebook: Path) -> None:
    found = nbformat.read(notebook, as_version=4)
    nbformat.validate(found)
    kinds = ("slide", "subslide", "fragment", "notes", "-")
    assert len({cell.id for cell in found.cells}) == len(found.cells)
    for cell in found.cells:
        assert cell.metadata.slideshow.slide_type in kinds
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)
    text = "\n".join(cell.source for cell in found.cells)
    assert "Ask the room" in text
    minutes = [int(number) for number in re.findall(r"\((\d+) minutes\)", text)]
    (whole,) = re.findall(r"About (\d+) minutes", text)
    assert abs(sum(minutes) - int(whole)) <= 5


RUN = """
import json, sys
cells = json.loads(open(sys.argv[1], encoding="utf-8").read())["cells"]
for cell in cells:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), sys.argv[1], "exec"))
if sys.argv[2:]:
    import torch
print("torch" in sys.modules)
"""


def run_cells(notebook: Path, *more: str) -> str:
    command = [sys.executable, "-c", RUN, str(notebook), *more]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("notebook", LECTURES, ids=lambda path: path.stem)
def test_a_lectures_cells_run_without_torch(notebook: Path) -> None:
    assert run_cells(notebook) == "False\n"


def test_torch_would_be_seen() -> None:
    assert run_cells(LECTURES[0], "torch") == "True\n"
