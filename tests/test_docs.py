"""The documentation: it builds without a warning, its links lead somewhere, its example works."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from autograder.authoring.build import read_source
from autograder.authoring.length import length_violations
from autograder.cli.app import main as autograder
from autograder.publish import grades_csv
from autograder.review import changes
from course import COMMANDS
from peakmem.labs.session import HIDDEN_MODULES
from peakmem.predict.step_ledger import build_ledger
from peakmem.scale.pipelines import SCHEDULES
from peakmem.show.widgets import __all__ as calculators
from peakmem.specs.models import model
from peakmem.specs.recipes import PRECISIONS, Recipe
from tests.files import python_files
from tests.test_architecture import ORDERS

_COMMAND = re.compile(r"`autograder (\w+)|^autograder (\w+)", re.MULTILINE)
_BLOCK = re.compile(r"```python\n# ([^\n]+)\n(.*?)```", re.DOTALL)


def pages(repository: Path) -> list[Path]:
    return sorted((repository / "docs").glob("*.md"))


# Commands and names


def test_every_command_in_the_guides_exists(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert autograder(["--help-all"]) == 0
    offered = set(re.findall(r"^  (\w+)  ", capsys.readouterr().out, re.MULTILINE))
    assert "grade" in offered
    for page in pages(repository):
        text = page.read_text("utf-8")
        named = {a or b for a, b in _COMMAND.findall(text)}
        assert named <= offered, (page.name, named - offered)
        assert set(re.findall(r"course\.py (\w+)", text)) <= set(COMMANDS), page.name


def test_the_bibliography_has_every_lab_and_calculator(repository: Path) -> None:
    text = (repository / "docs/bibliography.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(rows) == sorted([*HIDDEN_MODULES, *calculators])


@pytest.mark.parametrize("place", ["src/peakmem", "autograder"])
def test_the_map_has_every_module_with_its_own_first_line(repository: Path, place: str) -> None:
    text = (repository / "docs/architecture.md").read_text("utf-8")
    package = repository / place
    assert f"    {ORDERS[package.name]}\n" in text
    named = modules_in(text)
    files = [
        file
        for file in python_files(package)
        if file.parent != package
        and file.name != "__init__.py"
        and not re.fullmatch(r"lab\d+", file.parent.name)
        and "templates" not in file.parts
    ]
    for file in files:
        first = (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").partition("\n")[0]
        assert named.get((str(file.parent.relative_to(package)), file.stem)) == first, file


def modules_in(text: str) -> dict[tuple[str, str], str]:
    """A page's line on each module: its folder is the heading, its name the row."""
    named = {}
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        folder = section.partition("\n")[0]
        rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE)
        named |= {(folder, name): line for name, line in rows}
    return named


def test_a_row_under_another_folders_heading_does_not_count() -> None:
    text = "### core\n\n| module | |\n|---|---|\n| `units` | Bytes. |\n\n### plan\n"
    assert modules_in(text) == {("core", "units"): "Bytes."}


@pytest.mark.parametrize(
    ("file", "columns"), [("grades.csv", grades_csv.COLUMNS), ("changes.csv", changes.COLUMNS)]
)
def test_the_columns_of_a_table_are_those_that_the_page_lists(
    repository: Path, file: str, columns: tuple[str, ...]
) -> None:
    assert columns_in((repository / "docs/out_folder.md").read_text("utf-8"), file) == columns


def columns_in(text: str, file: str) -> tuple[str, ...]:
    """The first column of the table under a file's heading."""
    section = text.partition(f"\n## {file}\n")[2].partition("\n## ")[0]
    return tuple(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_another_tables_column_is_not_this_ones() -> None:
    text = "\n## a.csv\n\n| `x` | one |\n| `y` | two |\n\n## b.csv\n\n| `z` | three |\n"
    assert columns_in(text, "a.csv") == ("x", "y")
    assert columns_in(text, "c.csv") == ()


def test_the_students_names_are_those_that_the_page_lists(repository: Path) -> None:
    text = (repository / "docs/library.md").read_text("utf-8")
    listed = dict(
        re.findall(r"^\| `peakmem\.(\w+)` \| `(peakmem\.[\w.]+)` \|$", text, re.MULTILINE)
    )
    files = (repository / "src/peakmem").glob("*.py")
    assert set(listed) == {file.stem for file in files} - {"__init__"}
    for name, place in listed.items():
        face, module = import_module(f"peakmem.{name}"), import_module(place)
        assert face.__all__ == module.__all__
        assert all(getattr(face, public) is getattr(module, public) for public in face.__all__)


def test_what_isnt_predicted_is_still_not(repository: Path) -> None:
    page = (repository / "docs/library.md").read_text("utf-8")
    section = page.partition("### What isn't predicted")[2].partition("\n###")[0]
    assert "fp8 arithmetic" in section
    assert not [name for name, precision in PRECISIONS.items() if "fp8" in precision.compute]
    assert "moves only optimizer state and master weights" in section
    on_device, offloaded = (
        build_ledger(model("gpt2"), Recipe("mixed", batch=2, sequence=128, offload=offload))
        for offload in (False, True)
    )
    owners = on_device.by_owner(), offloaded.by_owner()
    assert owners[0]["activation"] == owners[1]["activation"]
    assert owners[0]["optimizer_state"] > owners[1].get("optimizer_state", 0)
    assert "GPipe and Varuna" in section
    assert set(SCHEDULES) == {"1f1b", "gpipe", "varuna"}


def test_the_large_class_is_what_was_measured(repository: Path) -> None:
    recorded = json.loads((repository / "docs/measurements/thousand.json").read_text("utf-8"))
    small, large = recorded["runs"]
    assert large["submissions"] == 1000
    assert small["differences"] == large["differences"] == 0
    assert recorded["growth"] <= 1.1
    words = " ".join((repository / "docs/instructors.md").read_text("utf-8").split())
    assert f"were graded in {large['seconds']:.0f} s on {large['workers']} processors" in words
    cluster = (repository / "docs/cluster.md").read_text("utf-8")
    assert f"1000 submissions of lab 1 in {large['seconds']:.0f} s" in cluster


def test_the_speeds_beside_stock_are_what_was_measured(repository: Path) -> None:
    folder = repository / "docs/measurements"
    text = (repository / "docs/instructors.md").read_text("utf-8")
    words = " ".join(text.split())
    names = {"lab01_formats": "lab 1", "lab03_adam": "lab 3", "ps1": "`ps1`"}
    for row in json.loads((folder / "class.json").read_text("utf-8")):
        assert row["differences"] == []
        seconds = [f"{row[way]:.0f} s" for way in ("stock", "two_stock", "ours")]
        cells = [names[row["lab"]], str(row["submissions"]), *seconds]
        assert f"\n| {' | '.join(cells)} |" in text
        assert row["ours"] < min(row["stock"], row["two_stock"])
    figures = json.loads((folder / "grader.json").read_text("utf-8"))["lab01_formats"]
    ours, stock = (f"{figures[name]:.2f} s" for name in ("our_overhead", "stock_overhead"))
    assert f"takes {ours} per submission in lab 1, and stock nbgrader {stock}" in words


def test_the_margins_of_memory_budgets_are_what_was_measured(repository: Path) -> None:
    recorded = json.loads((repository / "docs/measurements/budgets.json").read_text("utf-8"))
    text = (repository / "docs/decisions/memory_budgets.md").read_text("utf-8")
    for task, margin in recorded["margins"].items():
        sizes = (margin[key] for key in ("budget_mib", "to_spare_mib", "over_mib"))
        named = ["not measured" if mib is None else f"{mib:.1f}" for mib in sizes]
        assert f"| `{task}` | {' | '.join(named)} |" in text
    for name, figures in recorded["conditions"].items():
        counts = (figures[key] for key in ("gradings", "lost", "could_not_judge"))
        assert f"| {name} | {' | '.join(map(str, counts))} |" in text
        answers, exercises = figures["gradings"] // figures["rounds"], len(figures["tasks"])
        of_each = f"each of the {answers} correct answers to the {exercises} exercises"
        assert of_each in " ".join(text.split())


def test_repeated_verdicts_of_lab_8_are_what_was_measured(repository: Path) -> None:
    recorded = json.loads((repository / "docs/measurements/verdicts.json").read_text("utf-8"))
    page = (repository / "docs/decisions/memory_budgets.md").read_text("utf-8")
    text = " ".join(page.split())
    answers = recorded["answers"]
    assert f"{recorded['gradings']} gradings gave each of the {len(answers)}" in text
    assert all(one["as_expected"] for one in answers)
    right = sum("/right_" in one["answer"] for one in answers)
    assert f"{right} correct answers, and {len(answers) - right} incorrect" in text


def test_lecture_and_guide_have_what_ranks_were_metered_to_hold(repository: Path) -> None:
    recorded = json.loads((repository / "docs/measurements/shards.json").read_text("utf-8"))
    lecture = (repository / "lectures/lecture4_scaling.ipynb").read_text("utf-8")
    page = (repository / "docs/lecturers.md").read_text("utf-8")
    for world in (2, 4):
        stages = [row for row in recorded["stages"] if row["ranks"] == world]
        cells = [f"{row['predicted_mib']:.2f} **{row['metered_mib']:.2f}**" for row in stages]
        row = f"| {world} ranks | {' | '.join(cells)} |"
        assert row in lecture
        assert row in page
    sent = recorded["traffic"][-1]
    assert f"sends {sent['metered_times']:.2f} times its tensor" in lecture
    assert f"gives {sent['predicted_times']:.2f}." in lecture


def test_losses_in_few_bits_are_what_was_measured(repository: Path) -> None:
    recorded = json.loads((repository / "docs/measurements/quantization.json").read_text("utf-8"))
    page = (repository / "docs/lecturers.md").read_text("utf-8")
    lecture = (repository / "lectures/lecture5_single_device.ipynb").read_text("utf-8")
    for row in recorded["rows"]:
        cells = (row["kind"], row["way"], f"{row['bits']:.2f}", f"{row['loss']:.4f}")
        assert f"| {' | '.join(cells)} |" in page
        words = {"trained rounded": ", trained rounded"}.get(row["kind"], "")
        way = {"fp32": "fp32, as it was trained", "int4, one scale": "int4, one scale per matrix"}
        name = f"| {way.get(row['way'], row['way'])}{words} |"
        if name in lecture and row["kind"] != "optimizer":
            assert f"{name} {row['bits']:.2f} | {row['loss']:.4f} |" in lecture
    assert lecture.count("trained rounded |") == 2
    adam, eight_bits = recorded["rows"][-2:]
    assert f"{eight_bits['bits']:.2f} bits per parameter instead of {adam['bits']:.2f}" in lecture
    assert f"the model's loss is {eight_bits['loss']:.4f}" in lecture
    assert recorded["command"] in page


def test_exact_to_the_byte_is_what_was_measured(repository: Path) -> None:
    recorded = json.loads((repository / "docs/measurements/cpu.json").read_text("utf-8"))
    both = [
        (entry["predicted_bytes"], entry["measured_bytes"])
        for entry in recorded["configurations"]
        if entry["predicted_bytes"] is not None
    ]
    assert all(predicted == measured for predicted, measured in both)
    for page in ("README.md", "docs/lecturers.md"):
        words = " ".join((repository / page).read_text("utf-8").split())
        assert re.findall(r"exact to the byte in all (\d+) configurations", words) == [
            str(len(both))
        ], page


# The website


class Page(HTMLParser):
    """Where a page's links and pictures lead, and the places that links can lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.without_words: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places.add(given.get("id", ""))
        self.links += [given[name] for name in ("href", "src") if given.get(name)]
        if tag == "img" and not given.get("alt"):
            self.without_words.append(given.get("src", ""))


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The website, built as the guide says; a warning fails it."""
    out = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-W", "-q", "-d", str(out / "doctrees")]
    done = subprocess.run(
        [*build, str(repository / "docs"), str(out / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out / "html"


def dead_links(site: Path) -> Iterator[str]:
    """Yield the links within the website that lead nowhere."""
    found = {path: Page(path) for path in site.rglob("*.html")}
    for path, page in found.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.exists():
                yield f"{path.name}: {link}"
            elif place and target in found and place not in found[target].places:
                yield f"{path.name}: {link} (no such place)"


def test_no_link_is_dead_and_no_picture_without_words(site: Path, repository: Path) -> None:
    assert len(list(site.glob("*.html"))) >= len(pages(repository))
    assert list(dead_links(site)) == []
    for path in site.glob("*.html"):
        assert Page(path).without_words == [], path.name


def test_the_reference_has_every_public_name(site: Path, repository: Path) -> None:
    page = (repository / "docs/api.md").read_text("utf-8")
    listed = re.findall(r"automodule:: (\S+)", page)
    package = repository / "src/peakmem"
    folders = [path.parent for path in package.rglob("__init__.py")]
    names = {folder: ".".join(folder.relative_to(repository / "src").parts) for folder in folders}
    public = {name for name in names.values() if getattr(import_module(name), "__all__", None)}
    assert set(listed) == {name for name in public if not re.search(r"lab\d|probes|cli", name)}
    shown = set(Page(site / "api.html").places)
    for name in listed:
        for public_name in import_module(name).__all__:
            places = {f"{name}.{public_name}", f"peakmem.{public_name}"}
            assert public_name.startswith("__") or places & shown, f"{name}.{public_name}"


def test_a_fields_comment_is_not_taken_for_its_type(site: Path) -> None:
    assert ">Type<" not in (site / "api.html").read_text("utf-8")


def test_mathematics_is_mathml_that_needs_no_script(site: Path) -> None:
    page = (site / "bibliography.html").read_text("utf-8")
    assert page.count("<math") >= 20
    assert "<msqrt>" in page
    assert r"\times" not in page


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html"><a href="#here"><a href="https://x.org">')
    (tmp_path / "c.html").write_text('<p id="there"><a href="a.html"><a href="#there">')
    assert list(dead_links(tmp_path)) == ["a.html: b.html", "a.html: #here (no such place)"]


def test_the_website_asks_for_nothing_from_elsewhere(site: Path) -> None:
    for path in site.glob("*.html"):
        loaded = re.findall(
            r'(?:<script[^>]*src|<link[^>]*rel="stylesheet"[^>]*href)="(\w+:)?//',
            path.read_text("utf-8"),
        )
        assert loaded == [], path.name


# The worked example


@pytest.fixture
def scratch(repository: Path, tmp_path: Path) -> Path:
    """A copy of the course in which the instructor guide's example was carried out."""
    root = tmp_path / "course"
    for name in ("autograder", "src", "solutions", "labs"):
        shutil.copytree(
            repository / name, root / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(repository / "nbgrader_config.py", root)
    guide = (repository / "docs/instructors.md").read_text("utf-8")
    for about, block in _BLOCK.findall(guide):
        carry_out(root, about, block)
    tasks = root / "autograder/content/lab02/__init__.py"
    edited = tasks.read_text("utf-8").replace(
        "        predict_training,\n", "        predict_training,\n        kv_cache_bytes,\n"
    )
    line = "from autograder.content.lab02.batch"
    tasks.write_text(
        edited.replace(line, f"from autograder.content.lab02.cache import kv_cache_bytes\n{line}"),
        "utf-8",
    )
    return root


def carry_out(root: Path, about: str, block: str) -> None:
    """Follow the first line of a block of the guide."""
    what, _, rest = about.partition(" ")
    if what == "append":
        path = root / rest.removeprefix("to ")
        path.write_text(path.read_text("utf-8") + "\n\n" + block, "utf-8")
    elif what == "insert":
        name, _, mark = rest.removeprefix("into ").partition(" before ")
        lines = (root / name).read_text("utf-8").splitlines(keepends=True)
        place = lines.index(mark.strip('"') + "\n") - 1  # the line before it opens the cell
        (root / name).write_text("".join([*lines[:place], block, "\n", *lines[place:]]), "utf-8")
    elif what == "replace":
        path = root / rest.removeprefix("in ")
        old, new = (lines.strip("\n") for lines in block.split("\n# ---\n"))
        assert path.read_text("utf-8").count(old) == 1, "what the guide replaces is there"
        path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    else:
        path = root / rest.removeprefix("file ")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block, "utf-8")


def test_the_worked_example_fits_the_course(scratch: Path) -> None:
    source = (scratch / "solutions/lab02_sizing.py").read_text("utf-8")
    assert source.index("## 2.12") < source.index("## 2.13") < source.index("## Does it fit? A pre")
    assert list(length_violations(read_source(source, "lab02"))) == [], "the lab has room for it"
    tasks = (scratch / "autograder/content/lab02/__init__.py").read_text("utf-8")
    assert tasks.count("kv_cache_bytes") == 2, "the names that the example stands beside are there"
    written = [scratch / "src/peakmem/probes/lab02.py", *scratch.rglob("bank/*/kv_cache_bytes.py")]
    for path in [*written, scratch / "autograder/content/lab02/cache.py"]:
        ast.parse(path.read_text("utf-8"))
    assert len(written) == 2


@pytest.mark.slow
def test_the_worked_example_works_as_it_stands(scratch: Path) -> None:
    program = (
        "from pathlib import Path\n"
        "from autograder.authoring.build import build\n"
        "from autograder.base.course import Course\n"
        "from autograder.content import find_task\n"
        "from tests.autograder.content.bank_in_process import graded_bank\n"
        "from autograder.content.lab02 import LAB\n"
        f"print([path.name for path in build(Course(Path({str(scratch)!r})), ['lab02_sizing'])])\n"
        "task = LAB.tasks[-1]\n"
        f"for entry, verdict in graded_bank(LAB, task, Path({str(scratch / 'bank')!r})):\n"
        "    print(entry.label, verdict.status, verdict.mistake)\n"
    )
    repository = Path(__file__).resolve().parents[1]
    paths = os.pathsep.join(map(str, [scratch, scratch / "src"]))
    # The tests' own helpers come from this repository, all else from the copy.
    for name in (
        "answers.py",
        "files.py",
        "grading.py",
        "autograder/content/bank_in_process.py",
    ):
        helper = scratch / "tests" / name
        helper.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(repository / "tests" / name, helper)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=scratch,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['lab02_sizing.ipynb', 'lab02_sizing.ipynb']",
        "lab02-kv_cache_bytes/right_loop right None",
        "lab02-kv_cache_bytes/wrong_keys_only wrong keys_only",
    ]
