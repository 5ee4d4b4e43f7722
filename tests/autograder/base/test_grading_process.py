"""The only gate in: reading a submission is bounded, and one too hard to read costs no points."""

import csv
import re
import shutil
from contextlib import contextmanager
from functools import partial
from html import unescape

import pytest

from autograder.base import pool
from autograder.base.course import COURSE, Course
from autograder.base.pool import Failure, Work, run_all
from autograder.cli import app
from autograder.publish.feedback import feedback_html
from autograder.publish.publishing import publish
from autograder.runs.classroom import grade_all, take
from autograder.runs.room import Classroom
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from tests.grading import LAB05, SEARCH, Class, course_copy, solved

STOPPED = "Only this submission is waiting for manual grading"


@contextmanager
def reading(slot):
    yield _read


def _read(item):
    if item == "pattern":  # code in C, to which no signal handler of Python's gets through
        return re.match("(a+)+$", "a" * 60 + "b")
    if item == "memory":
        while True:
            _hoard.append(b"1" * 2**26)
    return item


_hoard: list[bytes] = []


@pytest.mark.parametrize(
    ("item", "bounds", "said"),
    [
        ("pattern", {"cpu_seconds": 0.2}, "too much computing time"),
        ("memory", {"memory_bytes": 2**28}, "too much of the grader's memory"),
    ],
)
def test_what_is_too_hard_to_read_is_stopped_at_once_and_the_others_are_read(item, bounds, said):
    outcomes = dict(run_all([1, item, 2], Work(reading, **bounds), 1))
    failure = outcomes.pop(item)
    assert isinstance(failure, Failure)
    assert said in failure.reason
    assert STOPPED in failure.reason
    assert outcomes == {1: 1, 2: 2}


# The commands that read a submission again.


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate")
    room = Class(folder, course_copy(folder / "course"))
    room.hand_in("ada", solved())
    done = room.grade()
    assert done.returncode == 0, done.stderr
    return room


@pytest.fixture
def room(graded, tmp_path, monkeypatch):
    """The class, in a process that may read no submission itself."""

    def refuse(*_arguments, **_options):
        raise AssertionError("a submission was read outside of the gate")

    for name in ("read", "answers"):
        monkeypatch.setattr(Journal, name, refuse)
    monkeypatch.setattr("autograder.model.judge.judge", refuse)
    monkeypatch.setattr("autograder.publish.feedback.feedback_html", refuse)
    monkeypatch.setattr("autograder.notebooks.parse.parse_notebook", refuse)
    shutil.copytree(graded.out, tmp_path / "out")
    return Class(tmp_path, graded.course)


def run(room, command, *more):
    return app.main(["--course", str(room.course), command, str(room.out), *more])


COMMANDS = [("rejudge",), ("explain", "ada", SEARCH), ("export",), ("audit",)]


@pytest.mark.sandbox
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_no_command_reads_a_submission_itself(room, command, capsys):
    shutil.rmtree(room.out / "feedback")
    publish(OutFolder(room.out), Course(room.course))
    assert "Your code" in room.page("ada")
    run(room, *command)
    out, err = capsys.readouterr()
    assert "outside of the gate" not in out + err
    assert "Traceback" not in err


@pytest.mark.sandbox
@pytest.mark.parametrize("command", COMMANDS[:2], ids=lambda command: command[0])
def test_a_command_says_what_was_too_hard_to_read(room, command, capsys, monkeypatch):
    monkeypatch.setattr(pool, "Work", partial(Work, cpu_seconds=0.001))
    before = room.row("ada")
    run(room, *command)
    out, err = capsys.readouterr()
    assert re.search(rf"ada, .*{STOPPED}", out + err)
    assert room.row("ada") == before


@pytest.mark.sandbox
def test_a_page_that_is_too_hard_to_write_shows_the_points(room, capsys, monkeypatch):
    monkeypatch.setattr(pool, "Work", partial(Work, cpu_seconds=0.001))
    monkeypatch.setattr("autograder.publish.feedback.feedback_html", feedback_html)
    shutil.rmtree(room.out / "feedback")
    before = room.row("ada")
    publish(OutFolder(room.out), Course(room.course))
    assert STOPPED in capsys.readouterr().err
    page = room.page("ada")
    assert "Your cells aren't shown here" in unescape(page)
    assert "Your code" not in page
    assert "4 of 4 points" in page
    assert room.row("ada") == before


@pytest.mark.sandbox
def test_what_is_too_hard_to_grade_is_nobodys_loss(graded, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "Work", partial(Work, cpu_seconds=0.001))
    room = Classroom(LAB05, OutFolder(tmp_path), COURSE, b"s" * 32)
    handed = take(room, graded.submitted)
    assert list(grade_all(room, handed, 1)) == ["ada"]
    publish(OutFolder(tmp_path), COURSE)
    with (tmp_path / "grades.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    assert (row["status"], row["score"]) == ("grading failed", "")
    assert STOPPED in row["message"]
