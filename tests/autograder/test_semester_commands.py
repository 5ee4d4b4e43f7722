"""An instructor's commands over a semester, on a class of three and one absent student."""

import json
import shutil
import zipfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.base import pool
from autograder.base.course import Course
from autograder.cli import app
from autograder.cli.report import PROBLEM, USAGE
from autograder.content import lab05
from autograder.model.submission import SubmissionKey
from autograder.model.task import Finding
from autograder.sandbox.host import sandbox
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from tests.files import csv_records, csv_rows
from tests.grading import LAB05, SEARCH, Class, cell_of, course_copy, in_words, released, solved

pytestmark = pytest.mark.sandbox

EXPLAIN = "lab05-explain"
RULES = f"""
attempts = "best"
roster = "roster.csv"
receipts = "receipts.csv"
[due]
{LAB05} = 2026-11-20T23:59:00+01:00
[late]
percent_per_day = 10
most_percent = 50
"""
ROSTER = """id,first_name,last_name,email,lms_user_id
ada,Ada,Lovelace,ada@uni.example,1001
kim,Kim,=cmd,kim@uni.example,1003
"""
RECEIPTS = f"""student,lab,received,folder
ada,{LAB05},2026-11-19T10:00:00+01:00,monday
ada,{LAB05},2026-11-21T10:00:00+01:00,friday
lin,{LAB05},2026-11-22T10:00:00+01:00,friday
"""


def minus():
    """The search answers less than nothing; all else is not written."""
    notebook = in_words(released())
    cell_of(notebook, f"{SEARCH}-solution")["source"] = (
        "def largest_micro_batch(run, upper): return -upper"
    )
    return notebook


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The class, graded once by the real command; lin's work is two days late."""
    course = course_copy(tmp_path_factory.mktemp("course"))
    Course(course).secret()
    room = Class(tmp_path_factory.mktemp("class"), course)
    for folder, student, notebook in (
        ("monday", "ada", solved()),
        ("friday", "ada", minus()),
        ("friday", "lin", minus()),
    ):
        Class(room.folder, course).hand_in(f"{folder}/{student}", notebook)
    room.out.mkdir()
    (room.out / "semester.toml").write_text(RULES)
    (room.out / "roster.csv").write_text(ROSTER)
    (room.out / "receipts.csv").write_text(RECEIPTS)
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    return room


@pytest.fixture
def room(graded, tmp_path):
    """A copy of the graded class, for a test to change."""
    return graded.copied(tmp_path / "class")


@pytest.fixture
def no_code(monkeypatch):
    """Nothing may start a sandbox."""

    def refuse(*_arguments, **_options):
        raise AssertionError("student code would run")

    monkeypatch.setattr(sandbox.subprocess, "Popen", refuse)


def command(room, capsys, *arguments):
    status = app.main(["--course", str(room.course), *map(str, arguments)])
    return status, *capsys.readouterr()


def answer(monkeypatch, said):
    monkeypatch.setattr("builtins.input", lambda _: said)


def in_this_process(items, work, workers):
    """Like `pool.run_all`, in the only process that knows of a task added to a lab."""
    with work.make_worker(0) as do:
        yield from ((item, do(item)) for item in items)


def with_search(monkeypatch, **changes):
    """Put another search task into the lab."""
    monkeypatch.setattr(pool, "run_all", in_this_process)
    tasks = [replace(t, **changes) if t.id == SEARCH else t for t in lab05.LAB.tasks]
    monkeypatch.setattr(lab05, "LAB", replace(lab05.LAB, tasks=tuple(tasks)))


def judged_by(ok):
    return lambda case, _answer: {part: Finding(ok, "So says the judge.") for part in case.parts}


def by_hand(out, student, score=None, comment=None):
    """The manual points for the text answer; with arguments, set them."""
    with closing(Gradebook(f"sqlite:///{out / 'gradebook.db'}")) as book:
        grade = book.find_grade(EXPLAIN, LAB05, LAB05, student)
        note = book.find_comment(EXPLAIN, LAB05, LAB05, student)
        if score is not None:
            grade.manual_score, grade.needs_manual_grade = score, False
            note.manual_comment = comment
            book.db.commit()
        return grade.manual_score, note.manual_comment


def files(out):
    kept = (p for p in out.rglob("*") if p.is_file() and p.name != ".gradebook.lock")
    return {p.relative_to(out): p.read_bytes() for p in kept}


def test_a_wrong_judge_is_put_right_without_running_code(room, capsys, monkeypatch, no_code):
    by_hand(room.out, "ada", 1.5, "Well said.")
    answer(monkeypatch, "y")
    with monkeypatch.context() as wrong:
        with_search(wrong, judge=judged_by(ok=False))
        status, said, _ = command(room, capsys, "rejudge", room.out)
        assert status == 0
        assert f"ada, {SEARCH}: 4 -> 0\n    now:    So says the judge." in said
        assert "before: Right." in said
        assert room.row("ada")["score"] == "0"
    status, said, _ = command(room, capsys, "rejudge", room.out)
    assert status == 0
    assert f"ada, {SEARCH}: 0 -> 4" in said
    assert room.row("ada")["score"] == "4"
    assert "So says the judge" not in room.page("ada")
    assert by_hand(room.out, "ada") == (1.5, "Well said.")
    log = csv_records(room.out / "changes.csv")
    assert [(row["student"], row["old"], row["new"]) for row in log] == [
        ("ada", "4", "0"),
        ("ada", "0", "4"),
    ]


def test_grading_again_leaves_what_rejudging_put_right(room, capsys, monkeypatch):
    answer(monkeypatch, "y")
    with_search(monkeypatch, judge=judged_by(ok=True))
    status, said, _ = command(room, capsys, "rejudge", room.out)
    assert (status, f"lin, {SEARCH}: 0 -> 4" in said) == (0, True)
    assert "Judged again: 14 verdicts" in said  # of the attempts that count
    done = room.grade("--workers", "1")
    assert done.returncode == 0, done.stderr
    assert (room.row("lin")["score"], room.row("ada")["score"]) == ("4", "4")
    friday = Journal(OutFolder(room.out).attempt("friday")).verdicts(SubmissionKey("ada", LAB05))
    assert {v.task: v.points for v in friday.verdicts}[SEARCH] == 4


def test_an_id_in_other_letters_is_named(room):
    rules = (room.out / "semester.toml").read_text()
    (room.out / "semester.toml").write_text(f'extensions = "extensions.csv"{rules}')
    due = "2026-11-29T10:00:00+01:00"
    (room.out / "extensions.csv").write_text(
        f"student,lab,due\nLin,{LAB05},{due}\nmax,{LAB05},{due}\nkim,{LAB05},{due}\n"
    )
    (room.out / "roster.csv").write_text(ROSTER.replace("ada,", "ADA,"))
    done = room.grade("--workers", "1")
    assert done.returncode == PROBLEM
    assert (
        f"ada, {LAB05}: submitted, but the roster spells it ADA, who gets 0 points" in done.stderr
    )
    assert f"Lin, {LAB05}: has an extension, but this id is neither" in done.stderr
    assert "did you mean lin?" in done.stderr
    assert f"max, {LAB05}: has an extension, but this id is neither" in done.stderr
    assert "kim" not in done.stderr


@pytest.mark.parametrize("said", ["n", "", "no way"])
def test_nothing_is_written_unless_one_agrees(room, capsys, monkeypatch, said):
    with_search(monkeypatch, judge=judged_by(ok=False))
    answer(monkeypatch, said)
    before = files(room.out)
    status, out, _ = command(room, capsys, "rejudge", room.out)
    assert (status, out.splitlines()[-1]) == (0, "Nothing was written.")
    assert files(room.out) == before


def test_with_the_same_judges_no_score_changes(room, capsys, no_code):
    status, said, _ = command(room, capsys, "rejudge", room.out)
    assert status == 0
    assert said.splitlines() == [
        "Judged again: 14 verdicts, without running any code.",
        "No score changes.",
    ]


def test_answers_to_other_questions_are_not_judged(room, capsys, monkeypatch):
    cases = lab05.largest_micro_batch.cases
    with_search(
        monkeypatch,
        judge=judged_by(ok=False),
        cases=lambda rng: [replace(c, inputs={"upper": 5}) for c in cases(rng)],
    )
    status, said, _ = command(room, capsys, "rejudge", room.out)
    assert status == 0
    assert f"{SEARCH}: 2 verdicts kept, because the lab has changed; `autograder regrade`" in said
    assert "No score changes." in said
    assert room.row("ada")["score"] == "4"


def test_a_task_is_waived_and_the_waiver_taken_back(room, capsys, monkeypatch, no_code):
    answer(monkeypatch, "y")
    rules = room.out / "semester.toml"
    rules.write_text(f'{RULES}[waived]\n{SEARCH} = "Its text was wrong."\n')
    status, said, _ = command(room, capsys, "rejudge", room.out)
    assert status == 0
    assert f"lin, {SEARCH}: 0 -> 4" in said
    assert "Its text was wrong." in room.page("lin")
    assert (room.row("lin")["score"], room.row("kim")["score"]) == ("4", "0")
    assert (
        Journal(OutFolder(room.out)).verdicts(SubmissionKey("lin", LAB05)).verdicts[0].points == 0
    )
    rules.write_text(RULES)
    assert f"lin, {SEARCH}: 4 -> 0" in command(room, capsys, "rejudge", room.out)[1]
    assert room.row("lin")["score"] == "0"


def test_a_verdict_is_explained(room, capsys, no_code):
    status, said, _ = command(room, capsys, "explain", room.out, "lin", SEARCH)
    assert status == 0
    assert said.startswith(f"lin, {SEARCH}: incorrect, 0 of 4 points")
    assert "    def largest_micro_batch(run, upper): return -upper" in said
    assert "Judged again from the recorded answers: the same verdict." in said
    assert "(fixed, never shown)" in said
    assert "secret:  {'fits': " in said
    _, correct, _ = command(room, capsys, "explain", room.out, "ada", SEARCH)
    cases = [line for line in correct.splitlines() if line.startswith("Case ")]
    assert cases
    assert all(line.endswith(": correct") for line in cases)
    assert "inputs:" not in correct
    assert correct.endswith("--verbose shows the inputs and answers of correct cases.\n")
    _, whole, _ = command(room, capsys, "explain", room.out, "ada", SEARCH, "--verbose")
    assert whole.count("    inputs: ") == len(cases)
    assert "--verbose" not in whole
    for student, task, missing in (
        ("eve", SEARCH, "no result of eve"),
        ("Lin", SEARCH, "is it lin?"),
        ("lim", SEARCH, "is it lin?"),
        ("kim", SEARCH, "on the roster, but submitted nothing"),
        ("lin", SEARCH.partition("-")[2], f"Did you mean {SEARCH}?"),
        ("lin", "lab05-x", "no"),
        ("lin", EXPLAIN, "is graded manually"),
    ):
        status, _, problem = command(room, capsys, "explain", room.out, student, task)
        assert status == USAGE
        assert missing in problem


def test_the_attempt_that_counts_and_what_was_late(room):
    assert room.row("ada")["score"] == "4"
    assert "It is the best of 2 attempts, and the one that counts." in room.page("ada")
    assert "2 days late, so 20% of the points are taken off" in room.page("lin")
    assert {(r["score"], r["status"]) for r in room.rows() if r["student"] == "kim"} == {
        ("0", "not submitted")
    }
    chosen = json.loads((room.out / "counted.json").read_text())[LAB05]
    assert (chosen["ada"]["folder"], chosen["lin"]["percent_off"]) == ("monday", 20)
    assert chosen["lin"]["days_late"] == 2
    assert "less 20% for 2 days: <b>0</b> points so far" in room.page("lin")
    assert "less" not in room.page("ada").partition("<table")[0].partition("</style>")[2]


def test_all_that_leaves(room, capsys):
    by_hand(room.out, "ada", 1.5, "Well said.")
    by_hand(room.out, "lin", 1.0, "")
    status, _, _ = command(room, capsys, "export", room.out)
    assert status == 0
    folder = room.out / "export"
    rows = {r["student"]: r for r in csv_records(folder / "students.csv")}
    assert rows["ada"][f"{LAB05} final"] == "22.5"
    assert (rows["lin"][f"{LAB05} points"], rows["lin"][f"{LAB05} final"]) == ("1", "0.8")
    assert "1 of 23, less 20% for 2 days: <b>0.8</b> points</p>" in room.page("lin")
    assert (rows["kim"][f"{LAB05} final"], rows["kim"]["last_name"]) == ("0", "'=cmd")
    header, possible, *canvas = csv_rows(folder / "canvas.csv")
    assert header == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", LAB05]
    assert (possible[0].strip(), possible[-1]) == ("Points Possible", "23")
    assert canvas[0] == ["Lovelace, Ada", "1001", "", "ada", "", "22.5"]
    with zipfile.ZipFile(folder / "feedback.zip") as pages:
        names = [f"feedback/{student}/{LAB05}.html" for student in ("ada", "lin")]
        assert pages.namelist() == names
        assert pages.read(names[0]).decode() == room.page("ada")
    rates = {row["task"]: row["pass_rate"] for row in csv_records(folder / "statistics.csv")}
    assert rates[SEARCH] == "0.500"
    assert (folder / f"statistics-{LAB05}.png").read_bytes().startswith(b"\x89PNG")
    assert ": item analysis" in (folder / f"items-{LAB05}.html").read_text("utf-8")


def test_a_page_shows_what_a_person_gave_since(room, capsys):
    by_hand(room.out, "ada", 1.5, "Well said.")
    before = room.page("lin")
    assert command(room, capsys, "export", room.out)[0] == 0
    page = room.page("ada")
    assert "1.5 of 2 points" in page
    assert "Your instructor:</b> Well said." in page
    assert room.page("lin") == before
    with zipfile.ZipFile(room.out / "export" / "feedback.zip") as pages:
        assert pages.read(f"feedback/ada/{LAB05}.html").decode() == page


def test_who_waits_for_a_person_has_an_empty_cell(room, capsys):
    by_hand(room.out, "ada", 2.0, "")
    _, said, _ = command(room, capsys, "export", room.out)
    assert f"{LAB05}: 1 of 3 Canvas cells are empty" in said
    canvas = csv_rows(room.out / "export" / "canvas.csv")
    assert [(row[3], row[-1]) for row in canvas[2:]] == [("ada", "23"), ("kim", "0"), ("lin", "")]
    _, said, _ = command(room, capsys, "export", room.out, "--partial")
    assert f"{LAB05}: 1 of 3 Canvas cells have the points so far" in said
    canvas = csv_rows(room.out / "export" / "canvas.csv")
    assert [(row[3], row[-1]) for row in canvas[2:]] == [("ada", "23"), ("kim", "0"), ("lin", "0")]


def test_formgrader_knows_the_names(room):
    with closing(Gradebook(f"sqlite:///{room.out / 'gradebook.db'}")) as book:
        names = {s.id: (s.first_name, s.last_name) for s in book.students}
    assert names == {"ada": ("Ada", "Lovelace"), "kim": ("Kim", "=cmd"), "lin": ("", "lin")}


@pytest.mark.slow
def test_a_receipt_without_a_submission_is_named(room):
    (room.out / "receipts.csv").write_text(
        f"{RECEIPTS}kim,{LAB05},2026-11-20T10:00:00+01:00,friday\n"
    )
    done = room.grade("--workers", "1")
    assert done.returncode == PROBLEM
    assert f"kim, {LAB05}: there is a receipt for friday, but no submission" in done.stderr


@pytest.mark.slow
def test_a_lab_that_changed_is_regraded_beside_and_asked_about(room, capsys, monkeypatch, tmp_path):
    by_hand(room.out, "ada", 1.5, "Well said.")
    course = course_copy(tmp_path / "course")
    shutil.copy(room.course / ".course_secret", course)
    path = course / "labs" / LAB05 / f"{LAB05}.ipynb"
    release = json.loads(path.read_bytes())
    given = [
        cell
        for cell in release["cells"]
        if cell["cell_type"] == "code"
        and cell["metadata"].get("nbgrader", {}).get("locked")
        and not cell["metadata"]["nbgrader"]["grade"]
        and "demo" not in cell["metadata"].get("tags", ())
    ]
    given[0]["source"] += ["\nimport peakmem\npeakmem.OutOfMemory = KeyError"]
    path.write_text(json.dumps(release))
    changed = replace(room, course=course)
    arguments = ("regrade", LAB05, "--submitted", room.submitted, "--out", room.out)
    before = files(room.out)
    answer(monkeypatch, "n")
    status, said, _ = command(changed, capsys, *arguments, "--workers", "2")
    assert status == 0
    assert f"ada, {SEARCH}: 4 -> 0" in said
    now = {path: data for path, data in files(room.out).items() if path.parts[0] != "regrade"}
    assert now == before
    answer(monkeypatch, "y")
    status, said, _ = command(changed, capsys, *arguments, "--workers", "2")
    assert status == 0
    assert room.row("ada")["score"] == "0"
    assert "It is the best of 2 attempts" in room.page("ada")
    assert by_hand(room.out, "ada") == (1.5, "Well said.")
    assert not Path(room.out, "regrade").exists()
