"""An ordinary assignment's source, and submissions restored to its order."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest

from autograder.base.course import Course
from autograder.base.limits import Limits
from autograder.grading.ordinary import tasks_of
from autograder.grading.registry import find_lab, find_task, lab_names
from autograder.model.scoring import SANE, STOCK, Rules
from autograder.notebooks.assignment import read_assignment
from autograder.notebooks.binder import bind, is_bound, unbind
from autograder.notebooks.parse import Cell, parse_notebook
from autograder.notebooks.questions import questions_in, read_notebooks, source_notebook
from autograder.notebooks.redact import withheld, without
from autograder.notebooks.restore import DELETED, restore
from autograder.rules.semester import read_semester
from autograder.store.fingerprint import changed, terms_of
from autograder.store.out_folder import OutFolder
from tests.autograder.small_assignment import (
    NAME,
    PROBLEM1,
    PROBLEM2,
    cell_of,
    code,
    markdown,
    notebook,
    problem1,
    problem2,
    released,
    submission,
    write_course,
)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return Course(write_course(tmp_path_factory.mktemp("course")))


@pytest.fixture(scope="module")
def assignment(course):
    return read_assignment(NAME, course)


def put_in_order(assignment, made, name=PROBLEM1):
    """A submission's restored notebook, what runs, and the notes."""
    sheet = next(sheet for sheet in assignment.sheets if sheet.name == name)
    cells, _, _ = parse_notebook(json.dumps(made).encode())
    return restore(sheet.release, cells)


def one(root: Path, made, name="ps") -> Course:
    """A course of one assignment with one notebook."""
    path = root / "source" / name / f"{name}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(made), encoding="utf-8")
    return Course(root)


# The source


@pytest.mark.parametrize(("name", "build"), [(PROBLEM1, problem1), (PROBLEM2, problem2)])
def test_what_students_got_is_what_nbgrader_would_have_released(assignment, name, build):
    sheet = next(sheet for sheet in assignment.sheets if sheet.name == name)
    assert [r.cell.source for r in sheet.release.cells] == [
        cell["source"] for cell in released(build)["cells"]
    ]


def test_tests_that_run_are_the_sources_hidden_parts_included(assignment):
    (first, second) = assignment.sheets
    whole = {c["id"]: c["source"] for c in problem1()["cells"]}
    square = next(q for q in first.questions if q.id == "test_square")
    assert square.source == whole["test_square"]
    assert "assert square(0) == 0" in square.hidden
    assert "assert square(2) == 4" not in square.hidden
    assert {q.id: (q.points, q.is_manual) for q in first.questions} == {
        "test_square": (2, False),
        "test_total": (3, False),
        "test_quiet": (1, False),
        "test_twice": (1, False),
        "test_value": (2, False),
        "essay": (4, True),
        "plot": (2, True),
        "project": (3, True),
        "test_zero": (0, False),
    }
    assert [q.id for q in second.questions] == ["test_square"]
    assert [task.id for task in tasks_of(assignment, SANE)][-1] == "problem2/test_square"


def test_nbgraders_settings_are_the_courses(tmp_path):
    config = (
        "c.ClearSolutions.code_stub = {'python': 'pass  # yours'}\n"
        "c.ClearHiddenTests.begin_test_delimeter = 'VVV'\n"
        "c.ClearHiddenTests.end_test_delimeter = 'AAA'\n"
    )
    root = write_course(tmp_path, "instructor", config)
    folder = root / "instructor" / NAME
    text = (folder / f"{PROBLEM2}.ipynb").read_text()
    for before, after in (("BEGIN HIDDEN TESTS", "VVV"), ("END HIDDEN TESTS", "AAA")):
        text = text.replace(before, after)
    (folder / f"{PROBLEM2}.ipynb").write_text(text)
    (folder / f"{PROBLEM1}.ipynb").unlink()
    (sheet,) = read_assignment(NAME, Course(root)).sheets
    sources = {r.cell.id: r.cell.source for r in sheet.release.cells}
    assert sources["cube"] == "def cube(x):\n    pass  # yours"
    assert sources["test_square"] == "assert cube(2) == 8"


def test_the_source_folder_is_the_configs_or_nbgraders_own(tmp_path):
    assert Course(write_course(tmp_path / "a", "mine")).sources == tmp_path / "a" / "mine"
    for name in ("solutions", "source"):  # without a choice: the first while it is alone
        (tmp_path / "b" / name).mkdir(parents=True)
        assert Course(tmp_path / "b").sources == tmp_path / "b" / name
    assert Course(tmp_path / "nowhere").sources == tmp_path / "nowhere" / "source"
    (tmp_path / "b" / "nbgrader_config.py").write_text("c = get_config(\n")
    with pytest.raises(ValueError, match=r"nbgrader_config\.py can't be read: SyntaxError"):
        _ = Course(tmp_path / "b").config


def test_files_beside_the_notebooks_are_those_that_nbgrader_copies(tmp_path):
    root = write_course(tmp_path)
    folder = root / "source" / NAME
    for name in ("images/one.png", "__pycache__/x.pyc", ".ipynb_checkpoints/y.txt", "z.pyc"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"")
    assert sorted(Course(root).data_files(NAME)) == ["data.csv", "helper.py", "images/one.png"]
    with (root / "nbgrader_config.py").open("a") as file:
        file.write("c.CourseDirectory.ignore = ['*.csv', '__pycache__', '.ipynb_checkpoints']\n")
    assert sorted(Course(root).data_files(NAME)) == ["helper.py", "images/one.png", "z.pyc"]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([code("q", "### BEGIN SOLUTION\nx", solution=True)], "no end solution statement"),
        ([code("q", "### BEGIN SOLUTION\n### END SOLUTION")], "Solution region detected"),
        ([code("q", "1", grade=True, locked=True)], "does not have points"),
        ([code("q", "1", solution=True), code("q", "2", solution=True)], "Duplicate grade id"),
        ([code("q", "1", solution=True, schema_version=1)], "Outdated schema version: 1"),
        ([code("q", "### AUTOTEST f(1)", grade=True, locked=True, points=1)], "AUTOTEST"),
    ],
)
def test_what_nbgrader_would_not_release_is_refused_by_name(tmp_path, cells, said):
    root = one(tmp_path, notebook(*cells))
    with pytest.raises(ValueError, match=r"ps\.ipynb cannot be graded: ") as refused:
        read_assignment("ps", root)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_notebook_in_another_language_is_refused(tmp_path):
    made = notebook(code("x", "1"))
    made["metadata"]["kernelspec"]["language"] = "R"
    with pytest.raises(ValueError, match=r"it is in R; expected a notebook in Python"):
        read_assignment("ps", one(tmp_path, made))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not a notebook"),
        ('{"nbformat": 3, "worksheets": []}', "has nbformat 3; expected 4"),
    ],
)
def test_a_source_that_is_no_notebook_of_today_is_refused_by_name(tmp_path, text, said):
    (tmp_path / "ps.ipynb").write_text(text)
    with pytest.raises(ValueError, match=rf"ps\.ipynb {said}"):
        read_notebooks(tmp_path)


def test_what_there_is_to_grade_is_found_by_name(course):
    assert lab_names(course) == [NAME]
    lab = find_lab(NAME, course)
    assert lab.notebooks == (PROBLEM1, PROBLEM2)
    with pytest.raises(ValueError, match=r"no lab named 'ps2' in .*; the labs are ps1\. "):
        find_lab("ps2", course)
    assert find_task(f"{NAME}/problem1/test_square", course)[1].points == 2
    with pytest.raises(ValueError, match=r"its tests are ps1/problem1/test_square, "):
        find_task(f"{NAME}/test_square", course)
    with pytest.raises(ValueError, match=r"'problem1/test_square' isn't a test's name; .* ps1/"):
        find_task("problem1/test_square", course)


def test_questions_are_named_after_their_notebooks_and_headings(course):
    questions = questions_in(source_notebook(NAME, course))
    assert [(q.id, q.title, q.points, q.is_manual) for q in questions][:2] == [
        ("problem1/test_square", "Squares", 2, False),
        ("problem1/test_total", "A total", 3, False),
    ]
    titles = {q.id: q.title for q in questions}
    assert titles["problem1/test_quiet"] == "Without a word (problem1/test_quiet)"
    # A mark scheme's lines, which begin like headings, are none of a student's.
    assert titles["problem1/project"] == "In words (problem1/project)"


def test_notebooks_are_bound_and_parted_without_loss():
    parts = {PROBLEM1: problem1(), PROBLEM2: problem2()}
    bound = bind(parts, alone=False)
    assert is_bound(bound)
    assert unbind(bound, (PROBLEM1, PROBLEM2)) == parts
    alone = {PROBLEM2: problem2()}
    assert unbind(bind(alone, alone=True), (PROBLEM2,)) == alone
    assert not is_bound(bind(alone, alone=True))


# Submissions


def sources(to_run):
    return [cell.source for cell in to_run]


def test_all_cells_run_in_order_with_the_whole_tests(assignment):
    made, to_run, notes = put_in_order(assignment, submission()[PROBLEM1])
    assert notes == []
    tests = [cell for cell in to_run if cell.kind == "check"]
    assert [cell.task for cell in tests][:2] == ["test_square", "test_total"]
    assert "assert square(0) == 0" in tests[0].source
    assert "square(0)" not in json.dumps(made)
    assert to_run[0].source == cell_of(problem1(), "setup")["source"]


def test_an_edited_test_is_put_back(assignment):
    made = submission()[PROBLEM1]
    cell_of(made, "test_square")["source"] = "pass"
    _, to_run, notes = put_in_order(assignment, made)
    assert "pass" not in sources(to_run)
    assert any("assert square(0) == 0" in source for source in sources(to_run))
    assert "test_square" in notes[0].text


def test_a_deleted_test_is_put_back_and_said_to_be(assignment):
    made = submission()[PROBLEM1]
    made["cells"] = [cell for cell in made["cells"] if cell["id"] != "test_square"]
    restored, to_run, notes = put_in_order(assignment, made)
    assert cell_of(restored, "test_square")["metadata"][DELETED] is True
    assert DELETED not in cell_of(restored, "test_total")["metadata"]
    order = [cell.task for cell in to_run if cell.kind == "check"]
    assert order[0] == "test_square"
    assert "test_square" in notes[0].text


def test_of_two_copies_of_a_test_the_last_is_graded(assignment):
    made = submission()[PROBLEM1]
    copy = deepcopy(cell_of(made, "test_square")) | {"id": "copy"}
    made["cells"].insert(1, copy)  # before what it tests is defined
    restored, to_run, _ = put_in_order(assignment, made)
    (test,) = (cell for cell in to_run if cell.task == "test_square")
    solution = next(i for i, c in enumerate(restored["cells"]) if c["id"] == "square")
    assert test.index > solution


def test_a_helper_of_the_same_name_is_not_taken_for_the_answer(assignment):
    made = submission()[PROBLEM1]
    made["cells"].append(code("scratch", "def square(x):\n    return 0"))
    restored, _, notes = put_in_order(assignment, made)
    marked = [
        cell["source"]
        for cell in restored["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "square"
    ]
    assert marked == ["def square(x):\n    return x * x"]
    assert notes == []


def test_lost_metadata_costs_nothing_that_can_be_found(assignment):
    """Notebooks from editors that drop metadata and ids."""
    made = submission()[PROBLEM1]
    for cell in made["cells"]:
        cell["metadata"] = {}
        del cell["id"]
    restored, to_run, notes = put_in_order(assignment, made | {"nbformat_minor": 4})
    assert {cell.task for cell in to_run if cell.kind == "check"} == {
        *("test_square", "test_total", "test_quiet", "test_twice", "test_value", "test_zero")
    }
    assert "Found by the names that the code defines: square, total, quiet, value." in map(
        str, notes
    )
    bears = [c["metadata"].get("nbgrader", {}).get("grade_id") for c in restored["cells"]]
    assert bears.count("test_square") == 1
    # A text answer can't be located; its cell comes back, and the student's text stays.
    assert cell_of(restored, "essay")["metadata"][DELETED] is True
    assert any(cell["source"] == "It fits." for cell in restored["cells"])


# Hidden lines


def test_a_frame_that_shows_a_hidden_line_is_left_out_however_short():
    frames = [
        "AssertionError  Traceback (most recent call last)",
        "Cell In[3], line 2\n      1 assert f(1)\n----> 2 f(2)",
        "Cell In[1], line 2, in f(x)\n      1 def f(x):\n----> 2     return 1 / 0",
    ]
    error = {"output_type": "error", "ename": "E", "evalue": "no", "traceback": frames}
    (shown,) = withheld([error], {"f(2)"}, "")
    assert shown["traceback"] == [frames[0], frames[2]]
    # The student wrote this line too, so it isn't a secret.
    assert withheld([error], {"f(2)"}, "f(2)") == [error]


def test_a_line_that_quotes_a_hidden_one_is_left_out():
    printed = {"output_type": "stream", "name": "stdout", "text": "a\n>> assert f(2) == 4\nb\n"}
    (shown,) = withheld([printed], {"assert f(2) == 4"}, "")
    assert "assert" not in shown["text"]
    assert shown["text"].startswith("a\n[")
    assert without({"x = 1"}, "x = 1") == "x = 1"  # too short to mean anything


def test_values_and_pictures_that_are_no_quotes_stay():
    data = {"image/png": "aGlkZGVu", "text/plain": "assert f(2) == 4"}
    (shown,) = withheld([{"output_type": "display_data", "data": data}], {"assert f(2) == 4"}, "")
    assert shown["data"]["image/png"] == "aGlkZGVu"
    assert "assert" not in shown["data"]["text/plain"]


# Rules


@pytest.mark.parametrize(
    ("settings", "rules"),
    [
        ("", SANE),
        ('[ordinary]\nrules = "sane"', SANE),
        ('[ordinary]\nrules = "stock"', STOCK),
        ("[ordinary]\nstderr_costs_all = true", Rules(stderr_costs_all=True)),
        (
            '[ordinary]\nrules = "stock"\ndeleted_tests_wait = false',
            Rules(stderr_costs_all=True, odd_values_are_full_marks=True),
        ),
    ],
)
def test_the_rules_are_the_semesters(tmp_path, settings, rules):
    (tmp_path / "semester.toml").write_text(settings)
    assert read_semester(OutFolder(tmp_path)).ordinary == rules


@pytest.mark.parametrize(
    ("settings", "key", "value", "expected"),
    [
        ('rules = "nbgrader"', "ordinary.rules", "'nbgrader'", "sane, stock"),
        ("stderr_costs_all = 1", "ordinary.stderr_costs_all", "1", "true or false"),
        ("stderr = true", "ordinary.stderr", "True", "stderr_costs_all"),
    ],
)
def test_a_wrong_rule_is_named_with_what_was_expected(tmp_path, settings, key, value, expected):
    (tmp_path / "semester.toml").write_text(f"[ordinary]\n{settings}\n")
    with pytest.raises(ValueError, match="expected") as error:
        read_semester(OutFolder(tmp_path))
    for said in ("semester.toml", f": {key} ", value, expected):
        assert said in str(error.value)


def test_the_guides_example_is_what_it_says(repository, tmp_path):
    guide = (repository / "docs" / "ordinary.md").read_text(encoding="utf-8")
    example = guide.partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "semester.toml").write_text(example)
    rules = read_semester(OutFolder(tmp_path)).ordinary
    assert rules == Rules(odd_values_are_full_marks=True, deleted_tests_wait=True)
    # Every switch is in the guide.
    assert all(f"`{name} = " in guide or f"{name} = " in example for name in vars(rules))


def test_names_of_the_course_are_asked_for_in_the_rules(course, tmp_path):
    (tmp_path / "semester.toml").write_text(f'[waived]\n"{NAME}/problem1/test_square" = "Why."\n')
    assert read_semester(OutFolder(tmp_path), course).waived == {
        f"{NAME}/problem1/test_square": "Why."
    }
    (tmp_path / "semester.toml").write_text('[waived]\n"ps1/nothing" = "Why."\n')
    with pytest.raises(ValueError, match="ps1/problem1/test_square"):
        read_semester(OutFolder(tmp_path), course)
    assert list(read_semester(OutFolder(tmp_path), None).waived) == ["ps1/nothing"]


def test_other_rules_data_and_tests_are_other_terms(tmp_path):
    root = write_course(tmp_path)

    def terms(rules=SANE):
        return terms_of(NAME, Course(root), Limits(), isolated=True, rules=rules)

    before = terms()
    assert changed(before, terms()) == []
    assert changed(before, terms(Rules(stderr_costs_all=True))) == [
        "other rules (stderr_costs_all False, now True)"
    ]
    (root / "source" / NAME / "data.csv").write_text("amount\n1\n")
    assert changed(before, terms()) == ["another version of the lab"]


def test_cells_of_the_source_without_marks_run_too(tmp_path):
    """Another instructor's notebook need not have a locked cell, or a tag that labs know."""
    cells = [
        markdown("m", "# Free"),
        code("demo", "shown = 1") | {"metadata": {"tags": ["demo"]}},
        code("q", "assert shown == 1", grade=True, locked=True, points=1),
    ]
    (sheet,) = read_assignment("ps", one(tmp_path, notebook(*cells))).sheets
    _, to_run, _ = restore(sheet.release, [Cell("code", c["source"], c["id"]) for c in cells[1:]])
    assert sources(to_run) == ["shown = 1", "assert shown == 1"]
