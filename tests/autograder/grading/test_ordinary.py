"""Ordinary assignments through the real command: from notebooks to grades, pages and gradebook."""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
import subprocess
import sys
import warnings
from copy import deepcopy

import pytest
from playwright.sync_api import Browser

from tests.autograder.publish.test_gradebook import jupyter
from tests.autograder.small_assignment import (
    DATA,
    NAME,
    PROBLEM1,
    PROBLEM2,
    code,
    hand_in,
    markdown,
    notebook,
    submission,
    write_course,
)
from tests.grading import command_environment, grade_command

pytestmark = pytest.mark.slow

SQUARE, TOTAL, QUIET, TWICE, VALUE = (
    f"{PROBLEM1}/test_{name}" for name in ("square", "total", "quiet", "twice", "value")
)
ESSAY, CUBE = f"{PROBLEM1}/essay", f"{PROBLEM2}/test_square"

# The instructor's secrets: no page may contain one.
SCHEME = "A secret point each"
SECRETS = ("square(0)", "total([])", "cube(-2)", SCHEME)

PEEK = """
import inspect
print("PEEKED", "\\n".join(In[-1:]))
return x * x
"""
REACH = """
import os, socket, sqlite3
for place in ({places}):
    try:
        print("REACHED", place, os.listdir(place) if os.path.isdir(place) else open(place).read())
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", {port}), 1)
    print("REACHED the network")
except OSError:
    pass
try:
    open("data.csv", "w").write("amount\\n0\\n")
    print("REACHED the data")
except OSError:
    pass
"""
BLIND = "get_ipython().showtraceback = lambda *args, **more: None"


def with_own(made, source, name=PROBLEM1):
    """The notebook with a cell of the student's own at its beginning."""
    made = deepcopy(made)
    made[name]["cells"].insert(1, code("own", source))
    return made


def run(arguments, **more):
    return subprocess.run(
        [str(a) for a in arguments],
        env=command_environment(),
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
        **more,
    )


def rows(out, student):
    with (out / "grades.csv").open(newline="", encoding="utf-8") as file:
        return {row["task"]: row for row in csv.DictReader(file) if row["student"] == student}


def scores(out, student):
    return {task: row["score"] for task, row in rows(out, student).items()}


def page(out, student):
    """The text of a student's feedback."""
    return text_of(out / "feedback" / student / f"{NAME}.html")


def text_of(path):
    """The text of a page; in its source, colours split the words of code."""
    return html.unescape(re.sub(r"<[^>]*>", "", path.read_text(encoding="utf-8")))


def outputs(out, student, name=PROBLEM1):
    """The outputs of a student's notebook."""
    made = json.loads((out / "autograded" / student / NAME / f"{name}.ipynb").read_bytes())
    return [output for cell in made["cells"] for output in cell.get("outputs", ())]


ALL = {SQUARE: "2", TOTAL: "3", QUIET: "1", TWICE: "1", VALUE: "2", CUBE: "1"}


def judged(out, student):
    return {task: score for task, score in scores(out, student).items() if task in ALL}


@pytest.fixture(scope="module")
def course(tmp_path_factory, listening):
    """The course, and a class's submissions."""
    root = write_course(tmp_path_factory.mktemp("course"))
    submitted = root / "submitted"
    places = ", ".join(repr(str(path)) for path in (root, submitted, root / "source", root / "out"))
    reach = REACH.format(places=places, port=listening)
    handed = {
        "ada": submission(),
        "bob": submission(square="return x * abs(x)"),
        "blind": with_own(submission(square="return 0"), BLIND),
        "shows": submission(square="import sys\nsys.displayhook(2)\nreturn 0"),
        "flood": submission(square="for n in range(500):\n    display(n)\nreturn 0"),
        "mal": with_own(submission(), reach),
        "exits": with_own(submission(quiet="import os\nos._exit(3)"), "import os\nos._exit(1)"),
        "peeks": submission(square=PEEK.strip()),
        "half": {PROBLEM1: submission()[PROBLEM1]},
    }
    for student, notebooks in handed.items():
        hand_in(submitted, student, notebooks)
    (hand_in(submitted, "torn", submission()) / f"{PROBLEM2}.ipynb").write_text('{"cells": [')
    folder = hand_in(submitted, "renamed", submission())
    (folder / f"{PROBLEM2}.ipynb").rename(folder / f"{PROBLEM2}-final.ipynb")
    hand_in(submitted, "stranger", {PROBLEM1: notebook(code("x", "print('another course')"))})
    (submitted / "other" / "ps2").mkdir(parents=True)
    (root / "source" / "ps2").mkdir()
    empty = notebook(markdown("title", "# Problem set 2"))
    (root / "source" / "ps2" / "ps2.ipynb").write_text(json.dumps(empty))
    return root


@pytest.fixture(scope="module")
def listening():
    """A port that something listens on, outside."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def graded(course, tmp_path_factory):
    out = tmp_path_factory.mktemp("graded") / "out"
    done = run(grade_command(course, NAME, course / "submitted", out, "--workers", "2"))
    assert done.returncode == 0, done.stderr
    return out


def again(course, out, *more):
    return run(grade_command(course, NAME, course / "submitted", out, "--workers", "2", *more))


def test_right_work_gets_all_points_and_waits_for_a_person(graded):
    assert judged(graded, "ada") == ALL
    found = rows(graded, "ada")
    assert [found[f"{PROBLEM1}/{name}"]["status"] for name in ("essay", "plot", "project")] == [
        "manual grading"
    ] * 3


def test_a_failed_assertions_message_is_shown_and_its_hidden_source_is_not(graded):
    row = rows(graded, "bob")[SQUARE]
    assert (row["score"], row["status"]) == ("0", "incorrect")
    assert row["message"] == "The test failed with AssertionError: the square of -3 is 9"
    assert "the square of -3 is 9" in page(graded, "bob")
    assert "assert square(2) == 4" in page(graded, "bob")


@pytest.mark.parametrize("secret", SECRETS)
def test_no_page_and_no_notebook_that_leaves_holds_a_hidden_line(graded, secret):
    pages = list((graded / "feedback").rglob("*.html"))
    notebooks = list((graded / "autograded").rglob("*.ipynb"))
    assert len(pages) == 12
    assert len(notebooks) == 24
    for path in pages:
        assert secret not in text_of(path), path
    # Formgrader shows the mark scheme, which graders follow.
    shown = {path for path in notebooks if secret in path.read_text(encoding="utf-8")}
    assert shown == ({p for p in notebooks if p.stem == PROBLEM1} if secret == SCHEME else set())


def test_control_what_is_looked_for_is_found_where_it_stands(course):
    """The source contains the text that the test above looks for, so the test would find it."""
    for secret in SECRETS:
        assert any(secret in path.read_text() for path in (course / "source").rglob("*.ipynb"))
    assert "assert square(2) == 4" in (course / "source" / NAME / "problem1.ipynb").read_text()


def test_lines_of_hidden_tests_that_a_student_prints_are_left_out(graded):
    shown = page(graded, "peeks")
    assert judged(graded, "peeks") == ALL
    assert "PEEKED assert square(2) == 4" in shown
    assert "a line that quotes a hidden test is left out" in shown


def test_hostile_code_reaches_nothing_and_its_honest_answers_count(graded):
    assert "REACHED" not in str(outputs(graded, "mal"))
    assert judged(graded, "mal") == ALL


def test_a_process_that_ends_costs_what_it_must(graded):
    assert judged(graded, "exits") == ALL | {QUIET: "0", TWICE: "0"}
    assert "ended its own process" in rows(graded, "exits")[QUIET]["message"]


@pytest.mark.parametrize("student", ["blind", "flood", "shows"])
def test_a_failure_that_is_hidden_is_a_failure(graded, student):
    assert judged(graded, student) == ALL | {SQUARE: "0"}


def test_a_notebook_that_was_not_handed_in_costs_its_own_points(graded):
    assert judged(graded, "half") == ALL | {CUBE: "0"}
    assert rows(graded, "half")[CUBE]["message"] == "problem2.ipynb wasn't submitted."


@pytest.mark.parametrize(
    ("student", "reason"),
    [
        ("torn", "problem2.ipynb: The file isn't a notebook"),
        ("renamed", "problem2-final.ipynb"),
        ("stranger", "no cell of this lab"),
    ],
)
def test_what_cannot_be_read_is_quarantined_with_the_reason(graded, student, reason):
    found = rows(graded, student).values()
    assert {row["status"] for row in found} == {"quarantined"}
    assert all(reason in row["message"] for row in found)


SHOW_FILES = """
import os, numpy, subprocess, sys
subprocess.run(["echo", "leads nowhere"], stdout=sys.stdout, check=True)
print("HERE", sorted(os.listdir()), sorted(os.listdir("notes")))
print("MINE", open("notes/mine.csv").read(), open("data.csv").read() == "amount\\n1\\n2\\n3\\n")
from mine import thrice
print("MODULE", thrice(2), numpy.__name__, twice(2))
open("notes/new.txt", "w").write("new")
"""


@pytest.fixture(scope="module")
def beside(course, tmp_path_factory):
    """A class with files beside the notebooks, graded."""
    folder = tmp_path_factory.mktemp("beside")
    first = with_own(submission(), SHOW_FILES.strip())
    # The first cell has imported the course's `twice` only where it comes after the given one.
    cells = first[PROBLEM1]["cells"]
    cells.insert(3, cells.pop(1))
    for student in ("files", "shadows", "links"):
        handed = hand_in(folder / "submitted", student, first)
        (handed / "notes").mkdir()
        (handed / "notes/mine.csv").write_text("mine")
        (handed / "mine.py").write_text("def thrice(x):\n    return 3 * x\n")
        (handed / "data.csv").write_text("amount\n0\n" if student == "shadows" else DATA)
    shadows = folder / "submitted" / "shadows" / NAME
    for name in ("numpy", "sitecustomize", "helper", "autograder", "peakmem", "json", "IPython"):
        (shadows / f"{name}.py").write_text("print('SHADOWED')\ndef twice(x):\n    return 0\n")
    links = folder / "submitted" / "links" / NAME
    (links / "secret").symlink_to(course / ".course_secret")
    done = run(grade_command(course, NAME, folder / "submitted", folder / "out"))
    assert done.returncode == 0, done.stderr
    return folder


def own_words(out, student):
    """The output of the student's own cell."""
    return next(o["text"] for o in outputs(out, student) if "HERE" in o.get("text", ""))


def test_files_handed_in_beside_the_notebook_are_there(beside):
    out = beside / "out"
    assert judged(out, "files") == ALL
    assert own_words(out, "files").splitlines() == [
        "HERE ['data.csv', 'helper.py', 'mine.py', 'notes'] ['mine.csv']",
        "MINE mine True",
        "MODULE 6 numpy 4",
    ]
    assert "Handed in too" not in page(out, "files")


def test_a_students_files_take_nothing_of_the_courses_place(beside):
    out = beside / "out"
    assert judged(out, "shadows") == ALL
    assert "SHADOWED" not in str(outputs(out, "shadows"))
    assert own_words(out, "shadows").splitlines()[1:] == ["MINE mine True", "MODULE 6 numpy 4"]
    said = "Also submitted, but replaced by the course's own: data.csv, helper.py."
    assert said in page(out, "shadows")


def test_a_link_among_the_files_is_not_followed_and_a_person_is_told(beside):
    out = beside / "out"
    assert judged(out, "links") == ALL
    assert "secret" not in own_words(out, "links")
    said = "Files submitted with the notebooks that weren't read: secret (a link)."
    assert said in page(out, "links")
    assert f'"links","{NAME}"' in (out / "manual_review.csv").read_text()


def test_other_files_are_another_submission(course, beside, tmp_path):
    out = shutil.copytree(beside / "out", tmp_path / "out")
    submitted = shutil.copytree(beside / "submitted", tmp_path / "submitted", symlinks=True)
    (submitted / "files" / NAME / "notes" / "mine.csv").write_text("other")
    entries = {path.stem: path.read_bytes() for path in out.rglob("*.entry")}
    assert run(grade_command(course, NAME, submitted, out)).returncode == 0
    changed = {
        path.stem for path in out.rglob("*.entry") if entries[path.stem] != path.read_bytes()
    }
    assert changed == {"files"}
    assert "MINE other" in own_words(out, "files")


def test_an_nbgrader_course_is_no_folder_to_grade_into(course, tmp_path):
    root = shutil.copytree(course, tmp_path / "course")
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    done = run(grade_command(root, NAME, root / "submitted", root))
    assert done.returncode == 2
    assert "give another OUT" in done.stderr
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_who_handed_in_another_assignment_only_is_not_in_this_one(graded):
    assert rows(graded, "other") == {}


def test_the_course_is_not_written_to(course, graded):
    assert {path.name for path in course.iterdir()} == {
        *("source", "submitted", "nbgrader_config.py", ".course_secret")
    }
    assert graded.is_dir()


def test_a_persons_points_survive_a_second_run_and_reach_the_export(course, graded, tmp_path):
    from nbgrader.api import Gradebook

    out = shutil.copytree(graded, tmp_path / "out")
    url = f"sqlite:///{out}/gradebook.db"
    with warnings.catch_warnings(action="ignore"), Gradebook(url) as gradebook:
        for name, given in (("essay", 3.5), ("plot", 2), ("project", 1)):
            grade = gradebook.find_grade(name, PROBLEM1, NAME, "ada")
            grade.manual_score, grade.needs_manual_grade = given, False
        comment = gradebook.find_comment("essay", PROBLEM1, NAME, "ada")
        comment.manual_comment = "Nicely said."
        gradebook.db.commit()
    journal = {path: path.stat().st_mtime_ns for path in out.rglob("*.entry")}
    shutil.rmtree(out / "feedback" / "ada")
    assert again(course, out).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.entry")} == journal
    assert "Nicely said." in page(out, "ada")
    assert "Nicely said." not in page(graded, "ada")
    with warnings.catch_warnings(action="ignore"), Gradebook(url) as gradebook:
        assert gradebook.find_grade("essay", PROBLEM1, NAME, "ada").score == 3.5
        comment = gradebook.find_comment("essay", PROBLEM1, NAME, "ada")
        assert comment.comment == "Nicely said."
        assert gradebook.find_submission(NAME, "ada").score == 16.5
    exported = run([*(sys.executable, "-m", "autograder", "--course", course), "export", out])
    assert exported.returncode == 0, exported.stderr
    with (out / "export" / "students.csv").open(newline="", encoding="utf-8") as file:
        (ada,) = (row for row in csv.DictReader(file) if row["student"] == "ada")
    assert (ada[f"{NAME} points"], ada[f"{NAME} of"], ada[f"{NAME} waiting"]) == ("16.5", "19", "0")


def test_a_run_that_is_killed_goes_on_where_it_stopped(course, graded, tmp_path):
    out = tmp_path / "out"
    command = grade_command(course, NAME, course / "submitted", out, "--workers", "1")
    with subprocess.Popen(
        command, env=command_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while not list(out.rglob("*.entry")):
            try:
                assert process.wait(timeout=0.02) is None, "it ended without an entry"
            except subprocess.TimeoutExpired:
                continue
        process.kill()
    done = {path: path.stat().st_mtime_ns for path in out.rglob("*.entry")}
    assert 0 < len(done) < 12
    assert again(course, out).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert (out / "grades.csv").read_bytes() == (graded / "grades.csv").read_bytes()


def test_other_rules_are_applied_by_rejudging_without_running_anything(course, graded, tmp_path):
    out = shutil.copytree(graded, tmp_path / "out")
    (out / "semester.toml").write_text("[ordinary]\nno_output_is_full_marks = false\n")
    kept = again(course, out)
    assert "other rules" in kept.stdout + kept.stderr
    assert f"`autograder --course {course} regrade {NAME} --submitted" in kept.stdout + kept.stderr
    assert judged(out, "ada") == ALL
    command = (sys.executable, "-m", "autograder", "--course", course, "rejudge", out)
    done = run(command, input="y\n")
    assert done.returncode == 0, done.stderr
    # If nothing is shown, an instructor has to look; if points are shown, nothing changes.
    assert judged(out, "ada") == {**dict.fromkeys(ALL, ""), TOTAL: "3", VALUE: "2"}
    assert rows(out, "ada")[SQUARE]["status"] == "not judged"


def test_hidden_tests_are_shown_where_the_instructor_says_so(course, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "semester.toml").write_text("[ordinary]\nshow_hidden_tests = true\n")
    submitted = tmp_path / "submitted"
    shutil.copytree(course / "submitted" / "bob", submitted / "bob")
    assert run(grade_command(course, NAME, submitted, out)).returncode == 0
    assert "### BEGIN HIDDEN TESTS" in page(out, "bob")
    # Once in the test itself, and once where the traceback points at it.
    assert page(out, "bob").count('assert square(-3) == 9, "the square of -3 is 9"') == 2


def test_without_the_sandbox_data_is_there_too_and_every_result_is_marked(course, tmp_path):
    submitted = tmp_path / "submitted"
    shutil.copytree(course / "submitted" / "ada", submitted / "ada")
    out = tmp_path / "out"
    assert run(grade_command(course, NAME, submitted, out, "--insecure")).returncode == 0
    assert judged(out, "ada") == ALL
    assert rows(out, "ada")[SQUARE]["message"].startswith("NOT ISOLATED: ")
    assert {path.name for path in (course / "source" / NAME).iterdir()} == {
        *("problem1.ipynb", "problem2.ipynb", "data.csv", "helper.py")
    }


def test_what_needs_a_person_names_the_command_that_explains_it(course, graded, tmp_path):
    submitted, out = tmp_path / "submitted", tmp_path / "out"
    hand_in(submitted, "many", submission(value="return 99"))
    assert run(grade_command(course, NAME, submitted, out)).returncode == 0
    with (out / "manual_review.csv").open(newline="", encoding="utf-8") as file:
        (need,) = (row for row in csv.DictReader(file) if row["kind"] == "not_judged")
    assert "99 points" in need["why"]
    assert need["next"].endswith(f"many {NAME}/{VALUE}")


def test_a_verdict_is_explained_with_the_tests_source(course, graded):
    command = (sys.executable, "-m", "autograder", "--course", course, "explain", graded)
    done = run([*command, "bob", f"{NAME}/{SQUARE}"])
    assert done.returncode == 0, done.stderr
    for said in ("incorrect, 0 of 2 points", "square(0)", "the same verdict", "AssertionError"):
        assert said in done.stdout
    refused = run([*command, "bob", f"{NAME}/nothing"])
    assert refused.returncode == 2
    assert f"{NAME}/{SQUARE}" in refused.stderr


def test_a_waived_test_is_everybodys(course, graded, tmp_path):
    out = shutil.copytree(graded, tmp_path / "out")
    settings = f'[waived]\n"{NAME}/{SQUARE}" = "Its sign was not said."\n'
    (out / "semester.toml").write_text(settings)
    command = (sys.executable, "-m", "autograder", "--course", course, "rejudge", out)
    assert run(command, input="y\n").returncode == 0
    assert judged(out, "bob") == ALL
    assert "Its sign was not said." in page(out, "bob")


def test_late_work_and_attempts_go_by_the_same_rules(course, tmp_path):
    out, submitted = tmp_path / "out", tmp_path / "submitted"
    out.mkdir()
    hand_in(submitted / "monday", "ada", submission())
    hand_in(submitted / "friday", "ada", submission(square="return 0"))
    (out / "semester.toml").write_text(
        'attempts = "best"\nreceipts = "receipts.csv"\n'
        f"[due]\n{NAME} = 2026-11-20T12:00:00Z\n[late]\npercent_per_day = 5\n"
    )
    (out / "receipts.csv").write_text(
        f"student,lab,received,folder\nada,{NAME},2026-11-20T11:00:00Z,friday\n"
        f"ada,{NAME},2026-11-21T11:00:00Z,monday\n"
    )
    done = run(grade_command(course, NAME, submitted, out))
    assert done.returncode == 0, done.stderr
    assert judged(out, "ada") == ALL
    assert "1 day late, so 5%" in page(out, "ada")


def test_a_page_is_readable_and_runs_nothing(graded, browser: Browser):
    shown = browser.new_page()
    asked: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    path = graded / "feedback" / "bob" / f"{NAME}.html"
    shown.goto(path.as_uri())
    assert [url for url in asked if not url.startswith("file:")] == []
    assert shown.locator("header h1").inner_text() == f"Feedback on {NAME}"
    assert shown.locator("section.mark.wrong").count() == 1
    assert shown.locator("section.mark.right").count() == 5
    texts = shown.locator("main h1").all_inner_texts()
    assert [text for text in texts if text.endswith(".ipynb")] == [
        "problem1.ipynb",
        "problem2.ipynb",
    ]
    # Given text isn't labelled as the student's.
    assert shown.locator(".cell.yours").count() == 7
    shown.close()


def test_formgrader_shows_each_notebook_and_takes_points_for_it(graded, browser: Browser, tmp_path):
    from nbgrader.api import Gradebook

    out, home = shutil.copytree(graded, tmp_path / "out"), tmp_path / "home"
    home.mkdir()
    url = f"sqlite:///{out}/gradebook.db"
    with warnings.catch_warnings(action="ignore"), Gradebook(url) as gradebook:
        place = gradebook.find_submission_notebook(PROBLEM1, NAME, "bob").id
    shown = browser.new_page(viewport={"width": 1280, "height": 900})
    with jupyter(out, home) as (address, token):
        shown.route(lambda url: not url.startswith(address), lambda route: route.abort())
        shown.set_extra_http_headers({"Authorization": f"token {token}"})
        shown.goto(f"{address}/formgrader/gradebook/{NAME}")
        for name, of in ((PROBLEM1, "18"), (PROBLEM2, "1")):
            row = shown.locator("tbody tr").filter(has_text=name)
            row.wait_for()
            assert f"/ {of}" in row.inner_text()
        shown.goto(f"{address}/formgrader/submissions/{place}/")
        for name, points in (("test_square", "0"), ("test_total", "3")):
            shown.locator(f"input.score#{name}").wait_for()
            shown.wait_for_function(f"document.getElementById('{name}').placeholder == '{points}'")
        shown.screenshot(path=tmp_path / "formgrader.png", full_page=True)
        for name, points in (("essay", "3.5"), ("project", "2")):
            shown.locator(f"input.score#{name}").fill(points)
            with shown.expect_response(
                lambda r: "/api/grade/" in r.url and r.request.method == "PUT"
            ):
                shown.locator(f"input.score#{name}").blur()
    shown.close()
    with warnings.catch_warnings(action="ignore"), Gradebook(url) as gradebook:
        assert gradebook.find_grade("project", PROBLEM1, NAME, "bob").manual_score == 2
        assert gradebook.find_submission_notebook(PROBLEM1, NAME, "bob").score == 7 + 5.5
