"""The build: the same bytes from the same source, nothing hidden in a release, no fault missed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

import nbformat
import pytest

from autograder.authoring.build import BuildError, build, check, find_sources
from autograder.base.course import Course
from tests.files import files_in

LAB = "lab05_accumulation"
TASK = "lab05-accumulate_gradients"
REPOSITORY = Path(__file__).resolve().parents[3]
LABS = sorted(path.stem for path in (REPOSITORY / "solutions").glob("lab*.py"))


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course of one lab, built nowhere yet."""
    root = tmp_path / "course"
    (root / "solutions").mkdir(parents=True)
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    shutil.copy(REPOSITORY / "solutions" / f"{LAB}.py", root / "solutions")
    return root


def source_of(course: Path, lab: str = LAB) -> Path:
    return course / "solutions" / f"{lab}.py"


def spoil(course: Path, old: str, new: str) -> None:
    text = source_of(course).read_text()
    assert text.count(old) >= 1, f"{old!r} is not in the source any more"
    source_of(course).write_text(text.replace(old, new, 1))


# What is built


def test_it_writes_two_notebooks_and_leaves_nothing_else(course: Path) -> None:
    before = files_in(course)
    changed = build(Course(course))
    made = [f"solutions/{LAB}/{LAB}.ipynb", f"labs/{LAB}/{LAB}.ipynb"]
    assert [path.relative_to(course).as_posix() for path in changed] == made
    assert files_in(course).keys() == before.keys() | set(made)
    assert build(Course(course)) == []


def test_another_process_builds_the_same_bytes(course: Path, tmp_path: Path) -> None:
    build(Course(course))
    twin = tmp_path / "elsewhere" / "a twin"
    (twin / "solutions").mkdir(parents=True)
    shutil.copy(course / "nbgrader_config.py", twin)
    shutil.copy(source_of(course), twin / "solutions")
    program = (
        "import sys, pathlib; from autograder.authoring.build import build; "
        "from autograder.base.course import Course; build(Course(pathlib.Path(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, twin],
        env={**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", ""), "success is silent"
    assert files_in(twin) == files_in(course)


def test_a_relative_root_builds_the_same(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(Course(course))
    monkeypatch.chdir(course)
    assert check(Course(Path())) == []
    assert Path.cwd() == course


def test_cell_ids_follow_the_source(course: Path) -> None:
    build(Course(course))
    notebook = nbformat.read(course / "solutions" / LAB / f"{LAB}.ipynb", as_version=4)
    nbformat.validate(notebook)
    unnamed = (f"lab05-cell-{number}" for number in count(1))
    for cell in notebook.cells:
        named = cell.metadata.get("nbgrader")
        assert cell.id == (named["grade_id"] if named else next(unnamed))
    assert set(notebook.metadata) == {"kernelspec", "peakmem"}


def test_tags_reach_the_release(course: Path) -> None:
    spoil(course, "# %%\npredicted_factor", '# %% tags=["demo"]\npredicted_factor')
    build(Course(course))
    cells = nbformat.read(course / "labs" / LAB / f"{LAB}.ipynb", as_version=4).cells
    tags = {cell.id: cell.metadata.get("tags") for cell in cells if "tags" in cell.metadata}
    assert tags["lab05-cell-1"] == ["demo"]
    assert tags[f"{TASK}-check"] == ["raises-exception"]
    assert tags["lab05-too-large"] == ["demo", "raises-exception"]
    assert "lab05-setup" not in tags


@pytest.mark.parametrize("lab", LABS)
def test_self_checks_are_collapsed_in_both_notebooks_and_nothing_asks_for_it(lab: str) -> None:
    for folder in ("solutions", "labs"):
        cells = nbformat.read(REPOSITORY / folder / lab / f"{lab}.ipynb", as_version=4).cells
        checks = [cell for cell in cells if cell.id.endswith("-check")]
        assert checks
        for cell in checks:
            assert cell.metadata.jupyter == {"source_hidden": True}, cell.id
    headers = source_of(REPOSITORY, lab).read_text().splitlines()
    assert not [line for line in headers if '-check"' in line and "source_hidden" in line]


@pytest.mark.parametrize("lab", LABS)
def test_long_given_cells_are_collapsed(lab: str) -> None:
    """A student reads the code of exercises, of leaks and of imports, and little else."""
    notebook = REPOSITORY / "labs" / lab / f"{lab}.ipynb"
    long = [
        cell.id
        for cell in nbformat.read(notebook, as_version=4).cells
        if cell.cell_type == "code" and len(cell.source.splitlines()) > 24
        if not cell.metadata.get("jupyter", {}).get("source_hidden")
        if not cell.id.endswith(("-solution", "-setup", "-leak"))
    ]
    assert long == []


@pytest.mark.parametrize("lab", LABS)
def test_a_release_holds_nothing_hidden(lab: str) -> None:
    release = REPOSITORY / "labs" / lab / f"{lab}.ipynb"
    cells = nbformat.read(release, as_version=4).cells
    shown = {line.strip() for cell in cells for line in cell.source.splitlines()}
    assert not [line for line in shown if "SOLUTION" in line or "HIDDEN" in line]
    assert "autograder" not in release.read_text()
    hidden, open_to_all = split_by_markers(source_of(REPOSITORY, lab).read_text())
    assert hidden, "the source has solutions to hide"
    assert not shown & (hidden - open_to_all)
    assert not any(cell.get("outputs") for cell in cells)
    assert all(cell.get("execution_count") is None for cell in cells)


def split_by_markers(source: str) -> tuple[set[str], set[str]]:
    hidden: set[str] = set()
    open_to_all: set[str] = set()
    current = open_to_all
    for line in source.splitlines():
        bare = line.removeprefix("# ").strip()
        if "### BEGIN" in line:
            current = hidden
        elif "### END" in line:
            current = open_to_all
        elif bare:
            current.add(bare)
    return hidden, open_to_all


# What is checked


def test_the_committed_notebooks_are_what_the_sources_build() -> None:
    assert check(Course(REPOSITORY)) == []


def test_check_names_what_differs_and_touches_nothing(course: Path) -> None:
    assert [sentence.split(" doesn't exist")[0] for sentence in check(Course(course))] == [
        f"solutions/{LAB}/{LAB}.ipynb",
        f"labs/{LAB}/{LAB}.ipynb",
    ]
    build(Course(course))
    release = course / "labs" / LAB / f"{LAB}.ipynb"
    release.write_text(release.read_text().replace("The batch you want", "The batch we want"))
    orphan = course / "labs" / "lab99_gone" / "lab99_gone.ipynb"
    orphan.parent.mkdir()
    orphan.write_text("{}")
    before = files_in(course)
    assert check(Course(course)) == [
        f"labs/{LAB}/{LAB}.ipynb differs from what solutions/{LAB}.py builds; "
        f"run `autograder build {LAB}`.",
        "labs/lab99_gone/lab99_gone.ipynb has no source; delete it, or move it elsewhere.",
    ]
    assert len(check(Course(course), [LAB])) == 1
    assert files_in(course) == before


# Text of the source, its replacement, and the expected name of the fault.
FAULTS = {
    "no solution cell": (f'"{TASK}-solution"', f'"{TASK}-answer"', f"cell {TASK}-solution: "),
    "no self-check": (f'"{TASK}-check"', f'"{TASK}-test"', f"cell {TASK}-check: expected a code"),
    "no grade cell": (f'"{TASK}"', f'"{TASK}-grade"', f"cell {TASK}: expected a code cell"),
    "points for no task": (f'"{TASK}"', f'"{TASK}-grade"', f"cell {TASK}-grade: it gives points"),
    "other points": ('"points": 4', '"points": 3', f"cell {TASK}: expected points 4, but it is 3"),
    "points for checking": ('"points": 0', '"points": 1', f"cell {TASK}-check: expected points 0"),
    "self-check not tagged": (
        '# %% tags=["raises-exception"]',
        "# %%",
        f'cell {TASK}-check: expected the tag "raises-exception"',
    ),
    "self-check without a name": (
        "# Self-check of 5.1",
        "# 5.1",
        f"cell {TASK}-check: expected its first line to be `# Self-check of",
    ),
    "self-check that shows a value": (
        'you predicted {predicted_factor}."\n    )\n',
        'you predicted {predicted_factor}."\n    )\nsquares\n',
        f"cell {TASK}-check: its last line may show a value",
    ),
    "another task is scored": (
        f'score("{TASK}"',
        'score("lab05-other"',
        f"cell {TASK}: expected comments, and between",
    ),
    "points are not the last line": (
        f'score("{TASK}", globals())',
        f'points = score("{TASK}", globals())',
        f"cell {TASK}: expected comments, and between",
    ),
    "the test is not hidden": (
        "### BEGIN HIDDEN TESTS\nfrom autograder.grading.stock import score",
        "from autograder.grading.stock import score\n### BEGIN HIDDEN TESTS",
        f"cell {TASK}: expected comments, and between",
    ),
    "code beside the hidden test": (
        "### BEGIN HIDDEN TESTS",
        "print(1)\n### BEGIN HIDDEN TESTS",
        f"cell {TASK}: expected comments, and between",
    ),
    "hidden region left open": (
        "### END HIDDEN TESTS\n",
        "",
        f"cell {TASK}: expected an END HIDDEN TESTS for each BEGIN HIDDEN TESTS, got 0 for 1",
    ),
    "solution left open": (
        "    ### END SOLUTION\n",
        "",
        f"cell {TASK}-solution: expected an END SOLUTION for each BEGIN SOLUTION, got 0 for 1",
    ),
    "solution where it is not cleared": (
        "predicted_factor = None",
        "### BEGIN SOLUTION\npredicted_factor = 10  ### END SOLUTION\n### END SOLUTION",
        "it has a BEGIN SOLUTION, so expected solution true",
    ),
    "another name is defined": (
        "def accumulate_gradients(",
        "def gather_gradients(",
        f"cell {TASK}-solution: expected a function or class accumulate_gradients",
    ),
    "two cells with one id": (
        '"lab05-end"',
        '"lab05-title"',
        "cell lab05-title: 2 cells have this grade_id",
    ),
    "an unlocked text": ('"locked": true', '"locked": false', "cell lab05-title: expected locked"),
    "a locked solution": (
        '"locked": false, "schema_version": 3, "solution": true',
        '"locked": true, "schema_version": 3, "solution": true',
        f"cell {TASK}-solution: expected locked false",
    ),
    "a cell of another lab": ('"lab05-end"', '"lab06-end"', "cell lab06-end: expected a grade_id"),
    "an id that nbformat refuses": ('"lab05-end"', '"lab05-the end"', "expected a grade_id"),
    "old metadata": ('"schema_version": 3', '"schema_version": 2', "expected schema_version 3"),
    "not Python": ("predicted_factor = None", "predicted_factor = =", "this is not Python: "),
    "another kernel": ("name: python3", "name: ir", "header: expected a kernelspec named python3"),
}


@pytest.mark.parametrize(("old", "new", "expected"), FAULTS.values(), ids=FAULTS)
def test_a_fault_stops_the_build(course: Path, old: str, new: str, expected: str) -> None:
    spoil(course, old, new)
    before = files_in(course)
    with pytest.raises(BuildError) as caught:
        build(Course(course))
    assert any(expected in said for said in caught.value.violations), str(caught.value)
    assert all(said.startswith(f"solutions/{LAB}.py") for said in caught.value.violations)
    assert files_in(course) == before


def test_a_stub_without_its_def_line_stops_the_build(course: Path) -> None:
    spoil(course, "    ### BEGIN SOLUTION\n", "")
    spoil(course, "def accumulate_gradients", "### BEGIN SOLUTION\ndef accumulate_gradients")
    with pytest.raises(
        BuildError, match="expected accumulate_gradients in the release to be a stub"
    ):
        build(Course(course))


def test_a_stub_that_is_not_python_stops_the_build(course: Path) -> None:
    spoil(
        course,
        "    ### BEGIN SOLUTION\n    fits, too_large = 0, upper + 1\n",
        "    bounds = (\n    ### BEGIN SOLUTION\n    0, upper + 1)\n    fits, too_large = bounds\n",
    )
    with pytest.raises(BuildError, match="with the stub in place of the solution, this is not"):
        build(Course(course))


def test_what_nbgrader_refuses_is_told_in_its_words(course: Path) -> None:
    spoil(course, "    ### BEGIN SOLUTION\n", "    ### BEGIN SOLUTION\n    ### BEGIN SOLUTION\n")
    spoil(course, "    ### END SOLUTION\n", "    ### END SOLUTION\n    ### END SOLUTION\n")
    with pytest.raises(BuildError, match="nested begin solution statements"):
        build(Course(course))


def test_a_task_without_cells_stops_the_build_in_one_sentence(course: Path) -> None:
    source_of(course).write_text(source_of(course).read_text().replace(TASK, "lab05-renamed"))
    with pytest.raises(BuildError, match=f"task {TASK}: expected its code cells") as caught:
        build(Course(course))
    assert sum(TASK in said.partition(":")[0] for said in caught.value.violations) == 1


def test_cells_out_of_order_stop_the_build(course: Path) -> None:
    chunks = source_of(course).read_text().split("\n# %%")
    grade = next(i for i, chunk in enumerate(chunks) if f'"{TASK}"' in chunk)
    chunks.insert(1, chunks.pop(grade))
    source_of(course).write_text("\n# %%".join(chunks))
    with pytest.raises(BuildError, match=f"cell {TASK}: expected the order {TASK}-solution"):
        build(Course(course))


def test_all_faults_are_told_at_once(course: Path) -> None:
    other = source_of(course, "lab77_nothing")
    shutil.copy(source_of(course), other)
    spoil(course, '"points": 4', '"points": 3')
    spoil(course, '# %% tags=["raises-exception"]', "# %%")
    with pytest.raises(BuildError) as caught:
        build(Course(course))
    said = caught.value.violations
    assert len(said) == 4
    assert all(sentence in str(caught.value) for sentence in said)
    assert "lab77_nothing.py: there is no lab named" in said[-1]


def test_a_source_in_the_folder_that_nbgrader_releases_stops_the_build(course: Path) -> None:
    folder = course / "solutions" / LAB
    folder.mkdir()
    shutil.copy(source_of(course), folder)
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / ".ipynb_checkpoints" / f"{LAB}-checkpoint.ipynb").write_text("{}")
    with pytest.raises(BuildError) as caught:
        build(Course(course))
    assert len(caught.value.violations) == 1
    assert caught.value.violations[0].startswith(f"solutions/{LAB}/{LAB}.py: only {LAB}.ipynb")


def test_a_lab_without_a_source_is_named_with_those_there_are(course: Path) -> None:
    with pytest.raises(ValueError, match=f"no source of lab98_x, lab99_y; its labs are {LAB}"):
        build(Course(course), [LAB, "lab98_x", "lab99_y"])


def test_a_folder_that_is_no_course_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="isn't a course folder"):
        build(Course(tmp_path))


def test_a_course_of_ordinary_assignments_is_told_who_releases_them(tmp_path: Path) -> None:
    (tmp_path / "source" / "ps1").mkdir(parents=True)
    for labs in (None, ["ps1"]):
        with pytest.raises(ValueError, match="release ordinary nbgrader assignments with nbgrader"):
            find_sources(Course(tmp_path), labs)
