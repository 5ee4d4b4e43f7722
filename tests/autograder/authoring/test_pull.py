"""Pull: edits of a built notebook reach the source in full or not at all."""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode

from autograder.authoring.build import BuildError, build, check
from autograder.authoring.pull import pull
from autograder.base.course import Course
from autograder.cli.app import main
from tests.files import files_in

LAB = "lab05_accumulation"
TASK = "lab05-accumulate_gradients"
REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of one lab, built; tests change copies of it."""
    root = tmp_path_factory.mktemp("pull") / "course"
    (root / "solutions").mkdir(parents=True)
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    shutil.copy(REPOSITORY / "solutions" / f"{LAB}.py", root / "solutions")
    build(Course(root))
    return root


@pytest.fixture
def course(built: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built, tmp_path / "course")


def source_of(course: Path) -> Path:
    return course / "solutions" / f"{LAB}.py"


def notebook_of(course: Path) -> Path:
    return course / "solutions" / LAB / f"{LAB}.ipynb"


def edit(
    course: Path, change: Callable[[dict[str, NotebookNode], list[NotebookNode]], Any]
) -> None:
    """Change the built notebook as an editor would: by its cells, seen by id and in order."""
    notebook = nbformat.read(notebook_of(course), as_version=4)
    change({cell.id: cell for cell in notebook.cells}, notebook.cells)
    nbformat.write(notebook, notebook_of(course))


def add_text(course: Path, cell_id: str = "lab05-title", text: str = "\n\nMore.") -> None:
    edit(course, lambda by_id, _: by_id[cell_id].update(source=by_id[cell_id].source + text))


def cells_of(course: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """Parts of each cell that must survive: type, text, and the metadata that a source holds."""
    kept = ("nbgrader", "tags", "slideshow")
    return [
        (
            cell.cell_type,
            cell.source.rstrip(),
            {k: v for k, v in cell.metadata.items() if k in kept and v},
        )
        for cell in nbformat.read(notebook_of(course), as_version=4).cells
    ]


def changed_lines(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in list(lines)[2:] if not line.startswith("@@")]


# What is carried


def test_an_unchanged_notebook_changes_nothing(course: Path) -> None:
    before = files_in(course)
    assert pull(Course(course), LAB) == []
    assert files_in(course) == before


def test_running_it_is_no_edit(course: Path) -> None:
    def run(_: object, cells: list[NotebookNode]) -> None:
        code = [cell for cell in cells if cell.cell_type == "code"]
        for count, cell in enumerate(code, 1):
            cell.execution_count = count
            cell.outputs = [nbformat.v4.new_output("stream", text="printed by a run\n")]
            cell.metadata.update(scrolled=True, collapsed=True, jupyter={"outputs_hidden": True})

    before = source_of(course).read_bytes()
    edit(course, run)
    assert pull(Course(course), LAB) == []
    assert source_of(course).read_bytes() == before
    build(Course(course))
    assert b"printed by a run" not in notebook_of(course).read_bytes()


def test_an_edited_cell_stays_collapsed_if_its_source_says_so(course: Path) -> None:
    before = source_of(course).read_text()
    add_text(course, "lab05-time", "  # edited")
    add_text(course, f"{TASK}-check", "  # edited")
    assert len(pull(Course(course), LAB)) == 2
    assert len(changed_lines(before, source_of(course).read_text())) == 4, "no header changed"
    assert check(Course(course)) == []


def test_points_and_text_change_their_lines_only(course: Path) -> None:
    def change(by_id: dict[str, NotebookNode], _: object) -> None:
        by_id["lab05-explain"].metadata.nbgrader.update(points=3)
        for name, old, new in (
            ("lab05-explain-about", r"\(core, 2 points", "(core, 3 points"),
            ("lab05-title", r"(words \| core \| \d+ \|) 2", r"\1 3"),
            ("lab05-title", r"(\*\*core.*) \*\*15", r"\1 **16"),
        ):
            by_id[name].source, count = re.subn(old, new, by_id[name].source)
            assert count == 1, (name, old)

    before = source_of(course).read_text()
    edit(course, change)
    assert pull(Course(course), LAB) == [
        "lab05-title: text -2 +2 lines",
        "lab05-explain-about: text -1 +1 lines",
        "lab05-explain: points 2 -> 3",
    ]
    lines = changed_lines(before, source_of(course).read_text())
    assert [line[0] for line in lines].count("+") == 4
    assert [line[0] for line in lines].count("-") == 4
    assert lines[-2].replace('"points": 2', '"points": 3')[1:] == lines[-1][1:]
    assert check(Course(course)) == []


def test_cells_are_added_deleted_and_moved(course: Path) -> None:
    def change(by_id: dict[str, NotebookNode], cells: list[NotebookNode]) -> None:
        setup = by_id["lab05-setup"]
        cells.remove(setup)
        cells.insert(0, setup)
        cells.insert(2, nbformat.v4.new_code_cell("def half(x):\n    return x / 2"))
        cells.remove(by_id["lab05-end"])

    edit(course, change)
    edited = cells_of(course)
    assert pull(Course(course), LAB) == [
        "lab05-end: deleted",
        "lab05-setup: moved, now at the top",
        "'def half(x):': new code cell, after lab05-title",
    ]
    assert cells_of(course) == edited
    assert check(Course(course)) == []
    assert "\n# %%\ndef half(x):\n    return x / 2\n\n\n# %% [markdown]" in (
        source_of(course).read_text()
    ), "as ruff formats it"


def test_a_cell_type_a_role_and_tags_are_carried(course: Path) -> None:
    def change(by_id: dict[str, NotebookNode], cells: list[NotebookNode]) -> None:
        by_id["lab05-cell-1"].metadata.tags = ["demo"]
        by_id["lab05-end"].metadata.nbgrader.grade_id = "lab05-summary"
        place = cells.index(by_id["lab05-time-explain"])
        cells[place] = nbformat.v4.new_raw_cell(cells[place].source, id=cells[place].id)

    edit(course, change)
    edited = cells_of(course)
    assert pull(Course(course), LAB) == [
        "'predicted_factor = None  # your predict…': tags none -> ['demo']",
        "lab05-time-explain: markdown -> raw; grade false -> none; "
        "grade_id lab05-time-explain -> none; locked true -> none; schema_version 3 -> none; "
        "solution false -> none; task false -> none",
        "lab05-end: grade_id lab05-end -> lab05-summary",
    ]
    assert cells_of(course) == edited


def test_formatting_of_other_cells_stays(course: Path) -> None:
    """Blank lines, a header's order, a quoted text: jupytext would write them differently."""
    text = source_of(course).read_text()
    text = text.replace("\n# %%\npredicted_factor", "\n\n\n\n#%%\npredicted_factor")
    text = text.replace(
        '{"grade": false, "grade_id": "lab05-end",', '{"grade_id": "lab05-end", "grade": false,'
    )
    source_of(course).write_text(text)
    build(Course(course))
    add_text(course)
    pull(Course(course), LAB)
    assert changed_lines(text, source_of(course).read_text()) == ["+#", "+# More."]


def test_a_line_that_looks_like_a_cell_inside_a_string_is_carried(course: Path) -> None:
    add_text(course, "lab05-cell-1", '\nmarker = """\n# %% no cell\n"""')
    edited = cells_of(course)
    pull(Course(course), LAB)
    assert cells_of(course) == edited
    assert check(Course(course)) == []
    add_text(course)
    pull(Course(course), LAB)
    assert check(Course(course)) == []


def test_after_a_pull_more_edits_can_be_pulled(course: Path) -> None:
    for _ in range(2):
        add_text(course)
        assert len(pull(Course(course), LAB)) == 1
    assert source_of(course).read_text().count("# More.") == 2


# Refused edits, with nothing changed


def refused(course: Path) -> str:
    before = files_in(course)
    with pytest.raises(BuildError) as caught:
        pull(Course(course), LAB)
    assert files_in(course) == before
    return str(caught.value)


def test_edits_on_both_sides_are_refused(course: Path) -> None:
    add_text(course)
    text = source_of(course).read_text()
    source_of(course).write_text(
        text.replace("Cut it into micro-batches", "Cut it in micro-batches")
    )
    said = refused(course)
    assert f"solutions/{LAB}.py was changed since the build too" in said
    assert f"{TASK}-about: text" in said
    assert "lab05-title: text" in said
    source_of(course).write_text(text)
    assert len(pull(Course(course), LAB)) == 1


def test_a_source_that_only_was_changed_is_kept(course: Path) -> None:
    text = (
        source_of(course)
        .read_text()
        .replace("Cut it into micro-batches", "Cut it in micro-batches")
    )
    source_of(course).write_text(text)
    assert pull(Course(course), LAB) == []
    assert source_of(course).read_text() == text


def test_a_changed_solution_is_seen_though_no_release_shows_it(course: Path) -> None:
    add_text(course)
    text = source_of(course).read_text()
    source_of(course).write_text(text.replace("    return fits\n", "    return int(fits)\n"))
    assert "was changed since the build too" in refused(course)


def test_an_edited_notebook_without_its_record_is_refused(course: Path) -> None:
    notebook = nbformat.read(notebook_of(course), as_version=4)
    del notebook.metadata["peakmem"]
    notebook.cells[0].source += " More."
    nbformat.write(notebook, notebook_of(course))
    assert "has no record" in refused(course)


def test_what_would_not_build_is_refused(course: Path) -> None:
    edit(course, lambda by_id, _: by_id[TASK].metadata.nbgrader.update(points=5))
    said = refused(course)
    assert f"cell {TASK}: expected points 4, but it is 5." in said
    assert said.endswith(
        f"Nothing was written. Correct solutions/{LAB}/{LAB}.ipynb, save it, and pull again."
    )


@pytest.mark.parametrize("text", ["\n# %% a cell of its own", "\nx = '''\x0c'''"])
def test_what_a_source_cannot_hold_is_refused(course: Path, text: str) -> None:
    add_text(course, "lab05-cell-1", text)
    assert "cell 'predicted_factor = None  # your predict…': a percent source" in refused(course)


def test_a_pasted_picture_is_refused(course: Path) -> None:
    picture = {"image.png": {"image/png": "iVBORw0KGgo="}}
    edit(course, lambda by_id, _: by_id["lab05-title"].update(attachments=picture))
    assert "cell lab05-title: a percent source can't hold it" in refused(course)


def test_build_does_not_overwrite_edits(course: Path) -> None:
    add_text(course)
    before = files_in(course)
    with pytest.raises(BuildError, match=f"autograder build --pull {LAB}"):
        build(Course(course))
    assert [said.partition(" was ")[0] for said in check(Course(course))] == [
        f"solutions/{LAB}/{LAB}.ipynb"
    ]
    assert files_in(course) == before
    notebook_of(course).unlink()
    build(Course(course))
    assert files_in(course).keys() == before.keys()
    assert check(Course(course)) == []


def test_a_notebook_with_a_merge_conflict_is_built_anew(course: Path) -> None:
    notebook_of(course).write_text("<<<<<<< HEAD\n")
    build(Course(course))
    assert check(Course(course)) == []


# The command


def test_the_command_tells_what_it_pulled(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_text(course)
    arguments = ["--course", str(course), "build", "--pull"]
    assert main([*arguments, LAB]) == 0
    assert capsys.readouterr().out == f"{LAB}:\n  lab05-title: text -0 +2 lines\n"
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"{LAB}:\n  no edits\n"
    edit(course, lambda by_id, _: by_id[TASK].metadata.nbgrader.update(points=5))
    assert main(arguments) == 2
    assert "expected points 4, but it is 5" in capsys.readouterr().err


# Whatever is edited

WORDS = st.sampled_from(
    ["# Title", "text", "", "# %% x", "#%%", "%%time", "# ---", "# # deep", "  indented", "é ∂ 中",
     "```", "### a", "- item", "$x$", "| a | b |", "two spaces  ", '"""', "# [markdown]", "# +"]
)  # fmt: skip
CODE = st.sampled_from(
    ["a = 1", "", "# note", "%matplotlib inline", "!ls", "def f():\n    return 1\n", "# !ls",
     "# +", "class A:\n    b = 2", "x = '# %% y'", "s = '''\n\n# %% z'''", "# region"]
)  # fmt: skip
WILD = WORDS | CODE | st.text(max_size=6)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.lists(st.text("abc-é ", min_size=1, max_size=5), max_size=2, unique=True),
        "slideshow": st.sampled_from([{"slide_type": "slide"}, {"slide_type": "fragment"}]),
        "scrolled": st.booleans(),
    },
)


def lines(fragment: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(fragment, max_size=5).map("\n".join)


def new_cells(code: st.SearchStrategy[str], words: st.SearchStrategy[str]) -> Any:
    return (
        st.builds(nbformat.v4.new_code_cell, lines(code), metadata=METADATA)
        | st.builds(nbformat.v4.new_markdown_cell, lines(words), metadata=METADATA)
        | st.builds(nbformat.v4.new_raw_cell, lines(words), metadata=METADATA)
    )


PLACES = st.integers(0, 20)
# Edits that build again with any text: new cells, and texts outside exercises.
TAME = st.one_of(
    st.tuples(st.just("insert"), PLACES, new_cells(CODE, WORDS)),
    st.tuples(st.just("append"), st.sampled_from([0, 2, -1]), lines(WORDS)),
    st.tuples(st.just("delete"), st.sampled_from([1, 2, -1]), st.none()),
)
ANY = st.one_of(
    st.tuples(st.just("insert"), PLACES, new_cells(WILD, WILD)),
    st.tuples(st.just("append"), PLACES, lines(WILD)),
    st.tuples(st.just("points"), PLACES, st.integers(0, 9)),
    st.tuples(st.just("delete"), PLACES, st.none()),
    st.tuples(st.just("move"), PLACES, PLACES),
    st.tuples(st.just("tag"), PLACES, METADATA),
)


def edited(cells: list[NotebookNode], edits: list[tuple[str, int, Any]]) -> list[NotebookNode]:
    """The cells after the edits; places count the cells that there were at first."""
    now = list(cells)
    for action, place, what in edits:
        cell = cells[place % len(cells)]
        if action == "insert":
            now.insert(place % len(cells), what)
        elif cell not in now:
            continue
        elif action == "delete":
            now.remove(cell)
        elif action == "move":
            now.remove(cell)
            now.insert(what % len(cells), cell)
        elif action == "append":
            cell.source += "\n" + what
        elif action == "points" and "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.points = what
        elif action == "tag":
            cell.metadata.update(what)
    return now


def pull_edits(built: Path, edits: list[tuple[str, int, Any]]) -> bool:
    """Edit a course's notebook and pull; whether that was carried, having checked that all was."""
    with TemporaryDirectory() as folder:
        course = shutil.copytree(built, Path(folder, "course"))
        edit(course, lambda _, cells: cells.__setitem__(slice(None), edited(cells, edits)))
        wanted, before = cells_of(course), files_in(course)
        try:
            pull(Course(course), LAB)
        except BuildError:
            assert files_in(course) == before
            return False
        build(Course(course))
        assert cells_of(course) == wanted
        assert check(Course(course)) == []
        return True


@settings(max_examples=5, phases=[hypothesis.Phase.generate])
@given(st.lists(TAME, min_size=1, max_size=4))
def test_edits_that_build_are_carried_whole(built: Path, edits: list[tuple[str, int, Any]]) -> None:
    assert pull_edits(built, edits)


@settings(max_examples=12, phases=[hypothesis.Phase.generate])
@given(st.lists(ANY, min_size=1, max_size=4))
def test_any_edits_are_carried_whole_or_not_at_all(
    built: Path, edits: list[tuple[str, int, Any]]
) -> None:
    pull_edits(built, edits)
