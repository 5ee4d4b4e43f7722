from __future__ import annotations

import json
import os
import secrets
import socket
import sqlite3
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader import api
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from playwright.sync_api import Browser
from sqlalchemy import insert, select
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograder.base.course import Course
from autograder.model.result import Result
from autograder.model.submission import SubmissionKey
from autograder.publish.gradebook import write_gradebook
from autograder.store.cells import save_cells
from autograder.store.database import save_students
from autograder.store.gradebook_file import open_session
from autograder.store.out_folder import OutFolder
from autograder.store.scores import scores_in
from tests.autograder.publish.test_feedback import HOSTILE_HTML, HOSTILE_MARKDOWN
from tests.autograder.small_class import (
    DOUBLE,
    EXPLAIN,
    HALVE,
    end_of,
    graded,
    make_course,
    verdict,
)
from tests.autograder.small_release import LAB, code, markdown, solved

CHECK = "lab05-double-check"


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path / "course")


def a_class() -> list[Result]:
    return [
        graded("ada"),
        graded("bob", verdicts=(verdict(status="partly"), verdict(HALVE, "needs_gpu"))),
        end_of("eve", "quarantined", "The file isn't a notebook: it is a PDF."),
        end_of("fay", "failed", "The grader's process stopped."),
    ]


def nbgrader(out: Path) -> NbGraderAPI:
    """nbgrader as it finds itself in `out`, by the configuration there."""
    config = Config()
    exec(
        (out / "nbgrader_config.py").read_text(),
        {"get_config": lambda: config, "__file__": out / "x"},
    )
    return NbGraderAPI(CourseDirectory(config=config), config=config)


def dump(out: Path) -> list[str]:
    with closing(sqlite3.connect(out / "gradebook.db")) as database:
        return list(database.iterdump())


def test_nbgrader_sees_the_lab_and_its_points(tmp_path: Path, course: Course) -> None:
    write_gradebook(a_class(), OutFolder(tmp_path), course)
    api = nbgrader(tmp_path)
    (assignment,) = api.get_assignments()
    assert (assignment["name"], assignment["status"]) == (LAB, "draft")
    assert (assignment["max_score"], assignment["num_submissions"]) == (5.0, 4)
    with api.gradebook as gradebook:
        notebook = gradebook.find_notebook(LAB, LAB)
        points = {cell.name: cell.max_score for cell in notebook.grade_cells}
        assert points == {CHECK: 0.0, DOUBLE: 2.0, HALVE: 1.0, EXPLAIN: 2.0}
        solutions = {cell.name for cell in notebook.solution_cells}
        assert solutions == {"lab05-double-solution", "lab05-halve-solution", EXPLAIN}
        assert "lab05-given" in {cell.name for cell in notebook.source_cells}


def test_nbgrader_sees_each_submission_with_its_scores(tmp_path: Path, course: Course) -> None:
    write_gradebook(a_class(), OutFolder(tmp_path), course)
    found = {s["student"]: s for s in nbgrader(tmp_path).get_submissions(LAB)}
    assert {name: s["score"] for name, s in found.items()} == {
        "ada": 2.0,
        "bob": 1.5,
        "eve": 0.0,
        "fay": 0.0,
    }
    assert all(s["needs_manual_grade"] and s["autograded"] for s in found.values())
    assert scores_in(OutFolder(tmp_path)) == {
        ("ada", LAB): {CHECK: 0.0, DOUBLE: 2.0, HALVE: 0.0, EXPLAIN: None},
        ("bob", LAB): {CHECK: 0.0, DOUBLE: 1.5, HALVE: None, EXPLAIN: None},
        ("eve", LAB): {CHECK: 0.0, DOUBLE: None, HALVE: None, EXPLAIN: None},
        ("fay", LAB): {CHECK: 0.0, DOUBLE: None, HALVE: None, EXPLAIN: None},
    }


def test_messages_stand_at_the_solution_cells(tmp_path: Path, course: Course) -> None:
    write_gradebook([*a_class(), graded("ivy", isolated=False)], OutFolder(tmp_path), course)
    with nbgrader(tmp_path).gradebook as gradebook:

        def comment(student: str, cell: str) -> str | None:
            found: str | None = gradebook.find_comment(cell, LAB, LAB, student).comment
            return found

        assert comment("ada", "lab05-halve-solution") == "0 of 1 points. It is x / 2."
        assert comment("ada", EXPLAIN) is None
        assert comment("bob", "lab05-halve-solution") == "Needs a GPU: Not earned: edges."
        for cell in ("lab05-double-solution", EXPLAIN):
            assert comment("eve", cell) == "Quarantined: The file isn't a notebook: it is a PDF."
        ivy = comment("ivy", "lab05-double-solution")
        assert ivy == "NOT ISOLATED: 2 of 2 points. Right."


def test_a_message_cannot_run_in_a_comment_either(tmp_path: Path, course: Course) -> None:
    message = "Your code raised E: <script>alert(1)</script>"
    write_gradebook([graded(verdicts=(verdict(message=message),))], OutFolder(tmp_path), course)
    with nbgrader(tmp_path).gradebook as gradebook:
        comment = gradebook.find_comment("lab05-double-solution", LAB, LAB, "ada").comment
    assert comment.endswith(f"```\n2 of 2 points. {message}\n```")


def test_writing_twice_changes_nothing(tmp_path: Path, course: Course) -> None:
    write_gradebook(a_class(), OutFolder(tmp_path), course)
    before = dump(tmp_path), {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.ipynb")}
    write_gradebook(a_class()[::-1], OutFolder(tmp_path), course)
    assert (dump(tmp_path), {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.ipynb")}) == before


def test_cells_are_recorded_once_and_again_where_that_was_cut_off_or_lost(
    tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def record(*arguments: Any) -> None:
        calls.append(arguments)
        save_cells(*arguments)

    def cut_off(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("autograder.publish.gradebook.save_cells", cut_off)
    with pytest.raises(KeyboardInterrupt):
        write_gradebook(a_class(), OutFolder(tmp_path), course)
    monkeypatch.setattr("autograder.publish.gradebook.save_cells", record)
    for expected in (1, 1):
        write_gradebook(a_class(), OutFolder(tmp_path), course)
        assert len(calls) == expected
    before = scores_in(OutFolder(tmp_path))
    (tmp_path / "gradebook.db").unlink()
    write_gradebook(a_class(), OutFolder(tmp_path), course)
    assert (len(calls), scores_in(OutFolder(tmp_path))) == (2, before)


def test_later_submissions_join_the_earlier_ones(tmp_path: Path, course: Course) -> None:
    write_gradebook(a_class()[:2], OutFolder(tmp_path), course)
    write_gradebook(a_class()[2:], OutFolder(tmp_path), course)
    assert len(scores_in(OutFolder(tmp_path))) == 4


def test_what_people_entered_stays(tmp_path: Path, course: Course) -> None:
    write_gradebook(a_class(), OutFolder(tmp_path), course)
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        for cell, points in ((EXPLAIN, 1.5), (DOUBLE, 0.5), (HALVE, 1.0)):
            grade = gradebook.find_grade(cell, LAB, LAB, "ada")
            grade.manual_score, grade.needs_manual_grade = points, False
        grade.extra_credit = 0.25
        gradebook.find_comment(EXPLAIN, LAB, LAB, "ada").manual_comment = "well said"
        gradebook.db.commit()
    before = dump(tmp_path)
    write_gradebook(a_class(), OutFolder(tmp_path), course)
    assert dump(tmp_path) == before

    changed = graded("ada", verdicts=(verdict(status="wrong"), verdict(HALVE, "wrong")))
    write_gradebook([changed], OutFolder(tmp_path), course)
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        found = {g.name: g for g in gradebook.find_submission_notebook(LAB, LAB, "ada").grades}
        assert {n: g.manual_score for n, g in found.items() if n != CHECK} == {
            EXPLAIN: 1.5,
            DOUBLE: 0.5,
            HALVE: 1.0,
        }
        assert found[DOUBLE].auto_score == 0.0
        # The instructor looks again only if the grader's score changed under a manual one.
        waiting = {name for name, grade in found.items() if grade.needs_manual_grade}
        assert waiting == {DOUBLE}
        assert gradebook.find_comment(EXPLAIN, LAB, LAB, "ada").comment == "well said"


def test_a_verdict_that_comes_later_needs_nobody(tmp_path: Path, course: Course) -> None:
    write_gradebook(
        [graded(verdicts=(verdict(status="could_not_judge"), verdict(HALVE)))],
        OutFolder(tmp_path),
        course,
    )
    assert scores_in(OutFolder(tmp_path))[SubmissionKey("ada", LAB)][DOUBLE] is None
    write_gradebook([graded(verdicts=(verdict(), verdict(HALVE)))], OutFolder(tmp_path), course)
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        grade = gradebook.find_grade(DOUBLE, LAB, LAB, "ada")
        assert (grade.auto_score, grade.needs_manual_grade) == (2.0, False)


def test_a_lab_with_other_cells_goes_into_a_new_folder(tmp_path: Path, course: Course) -> None:
    write_gradebook(a_class(), OutFolder(tmp_path), course)
    source = solved()
    source["cells"].append(code("lab05-more", "pass", grade=True, locked=True, points=1))
    path = course.root / "solutions" / LAB / f"{LAB}.ipynb"
    path.write_text(json.dumps(source))
    before = dump(tmp_path)
    with pytest.raises(ValueError, match="grade into a new folder"):
        write_gradebook(a_class(), OutFolder(tmp_path), course)
    assert dump(tmp_path) == before


def test_a_students_metadata_decides_nothing(tmp_path: Path, course: Course) -> None:
    notebook = solved()
    for cell in notebook["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"] |= {"points": 100, "solution": True}
        cell["metadata"]["hide_input"] = True
    notebook["cells"].insert(0, notebook["cells"][5] | {"source": "a copy, before the true one"})
    notebook["cells"].append(
        code("mine", "1", grade=True, points=9) | {"metadata": {"nbgrader": {"grade_id": "mine"}}}
    )
    notebook["metadata"] = {"kernelspec": {"name": "evil"}, "widgets": {}}
    write_gradebook([graded(notebook=notebook)], OutFolder(tmp_path), course)
    saved = nbformat.read(tmp_path / "autograded" / "ada" / LAB / f"{LAB}.ipynb", as_version=4)
    nbformat.validate(saved)
    assert saved.metadata == {"kernelspec": solved()["metadata"]["kernelspec"]}
    points = {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.get("points")
        for cell in saved.cells
        if cell.metadata
    }
    assert [points[name] for name in (DOUBLE, HALVE, EXPLAIN)] == [2, 1, 2]
    assert "mine" not in points
    names = [cell.metadata.nbgrader.grade_id for cell in saved.cells if cell.metadata]
    assert len(names) == len(set(names))
    assert nbgrader(tmp_path).get_submissions(LAB)[0]["max_score"] == 5.0


@pytest.mark.parametrize("result", [graded(notebook={"cells": []}), a_class()[2]])
def test_every_question_has_a_place_for_points(
    tmp_path: Path, course: Course, result: Result
) -> None:
    write_gradebook([result], OutFolder(tmp_path), course)
    path = tmp_path / "autograded" / result.student / LAB / f"{LAB}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    names = {cell.metadata.nbgrader.grade_id for cell in notebook.cells if cell.metadata}
    assert names == {DOUBLE, HALVE, EXPLAIN}


def test_formgraders_own_autograde_runs_nothing_and_loses_nothing(
    tmp_path: Path, course: Course
) -> None:
    write_gradebook(a_class(), OutFolder(tmp_path), course)
    before = dump(tmp_path), {p: p.read_bytes() for p in tmp_path.rglob("*.ipynb")}
    answer = nbgrader(tmp_path).autograde(LAB, "ada")
    assert not answer["success"]
    assert "No notebooks were matched" in answer["log"]
    assert (dump(tmp_path), {p: p.read_bytes() for p in tmp_path.rglob("*.ipynb")}) == before


def test_another_writer_is_waited_for(tmp_path: Path, course: Course) -> None:
    write_gradebook(a_class()[:1], OutFolder(tmp_path), course)
    path = tmp_path / "gradebook.db"
    with closing(sqlite3.connect(path, check_same_thread=False, timeout=0)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with (
            closing(sqlite3.connect(path, timeout=0)) as impatient,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            impatient.execute("SELECT * FROM grade")
        release = threading.Timer(0.5, other.rollback)
        release.start()
        write_gradebook(a_class(), OutFolder(tmp_path), course)
        release.join()
    assert len(scores_in(OutFolder(tmp_path))) == 4


def test_a_writer_in_formgrader_waits_a_minute_too(tmp_path: Path, course: Course) -> None:
    write_gradebook(a_class()[:1], OutFolder(tmp_path), course)
    with nbgrader(tmp_path).gradebook as gradebook, gradebook.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 60_000


@contextmanager
def jupyter(folder: Path, home: Path) -> Iterator[tuple[str, str]]:
    """A Jupyter server with formgrader in `folder`, on loopback; yields its address and token."""
    token = secrets.token_hex(16)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    others = ["jupyter_lsp", "jupyter_server_terminals", "jupyterlab", "jupyterlab_jupytext"]
    others += ["notebook", "notebook_shim", "nbgrader.server_extensions.assignment_list"]
    others += [f"nbgrader.server_extensions.{e}" for e in ("course_list", "validate_assignment")]
    extensions = dict.fromkeys(others, False) | {"nbgrader.server_extensions.formgrader": True}
    enable = {"ServerApp": {"jpserver_extensions": extensions}}
    (home / "jupyter_server_config.json").write_text(json.dumps(enable))
    command = [
        *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
        *(f"--port={port}", "--ip=127.0.0.1", f"--IdentityProvider.token={token}"),
        "--ServerApp.port_retries=0",
    ]
    clean = {**os.environ, "JUPYTER_CONFIG_DIR": str(home), "HOME": str(home)}
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, env=clean, stdout=log, stderr=log)
        try:
            address = f"http://127.0.0.1:{port}"
            while True:
                if server.poll() is not None:
                    raise RuntimeError((home / "server.log").read_text())
                try:
                    urllib.request.urlopen(f"{address}/api?token={token}").close()
                    break
                except (urllib.error.URLError, ConnectionError):
                    threading.Event().wait(0.1)
            yield address, token
        finally:
            server.terminate()
            server.wait()


def hostile() -> Result:
    notebook = solved()
    attack = code("own", "print()")
    attack["outputs"] = [
        {"output_type": "display_data", "metadata": {}, "data": {"text/html": HOSTILE_HTML}},
        {"output_type": "stream", "name": "stdout", "text": HOSTILE_HTML},
    ]
    raw: dict[str, Any] = {"cell_type": "raw", "metadata": {}, "source": HOSTILE_HTML}
    answer = markdown(EXPLAIN, HOSTILE_MARKDOWN, grade=True, solution=True, points=2)
    notebook["cells"] = [*notebook["cells"][:-1], attack, raw, answer]
    return graded("mal", notebook=notebook)


def named(student: str, last_name: str, first_name: str) -> dict[str, str]:
    return {"id": student, "last_name": last_name, "first_name": first_name}


def test_formgrader_shows_the_class_and_runs_nothing(
    browser: Browser, tmp_path: Path, course: Course
) -> None:
    out, home = tmp_path / "out", tmp_path / "home"
    home.mkdir()
    write_gradebook([*a_class(), hostile()], OutFolder(out), course)
    alert = "<img src=x onerror=alert(1)>"  # a platform may let students choose their names
    save_students(OutFolder(out), [named("ada", "Lovelace", "Ada"), named("mal", alert, alert)])
    dialogs: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    with nbgrader(out).gradebook as gradebook:
        place = {s: gradebook.find_submission_notebook(LAB, LAB, s).id for s in ("ada", "mal")}
    with jupyter(out, home) as (address, token):
        page.route(lambda url: not url.startswith(address), lambda route: route.abort())  # MathJax
        page.set_extra_http_headers({"Authorization": f"token {token}"})
        page.goto(f"{address}/formgrader/manage_submissions/{LAB}")
        row = page.locator("tbody tr").filter(has_text="ada")
        row.wait_for()
        assert "2 / 5" in row.inner_text()
        assert "Lovelace, Ada" in row.inner_text()
        assert page.locator("tbody tr td").filter(has_text="bob").first.inner_text() == "bob,"
        assert "1.5 / 5" in page.locator("tbody tr").filter(has_text="bob").inner_text()
        page.screenshot(path=tmp_path / "submissions.png")

        page.goto(f"{address}/formgrader/submissions/{place['ada']}/")
        page.locator(f"input.score#{DOUBLE}").wait_for()
        page.wait_for_function(f"document.getElementById('{DOUBLE}').placeholder == '2'")
        comment = page.locator("textarea#lab05-halve-solution-comment")
        page.wait_for_function(
            "document.getElementById('lab05-halve-solution-comment').value || "
            "document.getElementById('lab05-halve-solution-comment').placeholder"
        )
        said = comment.input_value() or comment.get_attribute("placeholder")
        assert said == "0 of 1 points. It is x / 2."
        page.screenshot(path=tmp_path / "graded.png", full_page=True)
        page.locator(f"input.score#{EXPLAIN}").fill("1.5")
        with page.expect_response(lambda r: "/api/grade/" in r.url and r.request.method == "PUT"):
            page.locator(f"input.score#{EXPLAIN}").blur()

        page.goto(f"{address}/formgrader/submissions/{place['mal']}/")
        page.locator(f"input.score#{DOUBLE}").wait_for()
        page.wait_for_function(f"document.getElementById('{DOUBLE}').placeholder == '2'")
        assert "This text may hold HTML" in page.inner_text("#notebook")
        assert not page.evaluate("document.documentElement.dataset.pwned")
        assert page.locator("#notebook :is(iframe, object, embed, form)").count() == 0
    page.close()
    assert dialogs == []
    write_gradebook(a_class(), OutFolder(out), course)
    with nbgrader(out).gradebook as gradebook:
        assert gradebook.find_grade(EXPLAIN, LAB, LAB, "ada").manual_score == 1.5


def test_what_fails_half_way_leaves_nothing_in_the_gradebook(course: Course) -> None:
    out = course.root.parent / "out"
    out.mkdir()
    write_gradebook([graded("ada")], OutFolder(out), course)

    def half_way() -> None:
        with open_session(OutFolder(out)) as session:
            session.execute(insert(api.Student), [{"id": "kim"}])
            raise LookupError

    with pytest.raises(LookupError):
        half_way()
    with closing(sqlite3.connect(out / "gradebook.db")) as database:
        assert database.execute("SELECT id FROM student").fetchall() == [("ada",)]


def test_nobody_else_writes_between_what_is_read_and_what_is_written(course: Course) -> None:
    out = course.root.parent / "out"
    out.mkdir()
    write_gradebook([graded("ada")], OutFolder(out), course)
    with (
        open_session(OutFolder(out)) as session,
        closing(sqlite3.connect(out / "gradebook.db", timeout=0)) as other,
    ):
        assert session.scalars(select(api.Student.id)).all() == ["ada"]
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("INSERT INTO student (id) VALUES ('kim')")


@pytest.mark.parametrize(
    "name",
    ["a#b", "a?b=c&d", "100%25", "%41", 'it\'s "so"', "two\nlines", "Ünï ☃", "[x]{y}*;"],
)
def test_formgrader_finds_the_gradebook_in_a_folder_of_any_name(course: Course, name: str) -> None:
    out = course.root.parent / name
    out.mkdir()
    write_gradebook([graded("ada")], OutFolder(out), course)
    assert (out / "gradebook.db").is_file()
    assert scores_in(OutFolder(out))[SubmissionKey("ada", LAB)][DOUBLE] == 2
    config = PyFileConfigLoader("nbgrader_config.py", path=str(out)).load_config()
    (found,) = NbGraderAPI(CourseDirectory(config=config), config=config).get_submissions(LAB)
    assert (found["student"], found["score"], found["autograded"]) == ("ada", 2, True)
    assert sorted(path.name for path in course.root.parent.glob("*/gradebook.db*")) == [
        "gradebook.db"
    ]


def shown_below(out: Path, student: str, cell: str) -> list[str]:
    """Formgrader's outputs below a cell."""
    path = OutFolder(out).graded_notebook(SubmissionKey(student, LAB), LAB)
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    (found,) = (c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == cell)
    return [output["text"] for output in found.get("outputs", [])]


def test_formgrader_shows_each_verdict_below_the_code(tmp_path: Path, course: Course) -> None:
    lost = solved()
    lost["cells"] = [c for c in lost["cells"] if c["id"] != f"{HALVE}-solution"]
    results = [*a_class(), graded("ivy", isolated=False), graded("max", notebook=lost)]
    write_gradebook(results, OutFolder(tmp_path), course)
    right = "Autograder: Correct, 2 of 2 points. Right.\n"
    squares = "Autograder: Incorrect, 0 of 1 points (mistake: squares). It is x / 2.\n"
    assert shown_below(tmp_path, "ada", f"{DOUBLE}-solution") == [right]
    assert shown_below(tmp_path, "ada", DOUBLE) == []
    assert shown_below(tmp_path, "ada", f"{HALVE}-solution") == [squares]
    assert shown_below(tmp_path, "max", HALVE) == [squares]
    (needs_gpu,) = shown_below(tmp_path, "bob", f"{HALVE}-solution")
    assert needs_gpu == "Autograder: Needs a GPU. Not earned: edges.\n"
    (outside,) = shown_below(tmp_path, "ivy", f"{DOUBLE}-solution")
    assert outside.startswith("Autograder: NOT ISOLATED: Correct")
    assert shown_below(tmp_path, "ada", EXPLAIN) == []


def test_formgrader_shows_a_long_message_in_lines_that_fit(tmp_path: Path, course: Course) -> None:
    long = "expected the largest micro-batch that fits, but got one more. " * 4
    indented = "For example:\n    f(1)"
    said = verdict(message=f"{long}\n\n{indented}")
    write_gradebook([graded("eve", verdicts=(said,))], OutFolder(tmp_path), course)
    (text,) = shown_below(tmp_path, "eve", f"{DOUBLE}-solution")
    assert max(map(len, text.splitlines())) <= 100
    assert " ".join(text.split()).endswith(f"{long}{' '.join(indented.split())}")
    assert text.endswith(f"\n\n{indented}\n")


def test_a_message_cannot_act_on_formgrader(tmp_path: Path, course: Course) -> None:
    evil = "\x1b[31mred <script>alert(1)</script>"
    attack = graded("eve", verdicts=(verdict(message=evil),))
    write_gradebook([attack], OutFolder(tmp_path), course)
    (text,) = shown_below(tmp_path, "eve", f"{DOUBLE}-solution")
    assert "\x1b" not in text
    assert "red <script>" in text, "which is text there, as all of a stream is"
