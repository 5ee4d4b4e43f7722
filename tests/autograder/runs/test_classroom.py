"""A whole class, by the real command: interrupted, run again, run five times."""

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from autograder.base import pool
from autograder.base.course import COURSE, Course
from autograder.base.files import write_whole
from autograder.model.result import Result
from autograder.model.submission import SubmissionKey
from autograder.runs.classroom import grade_all
from autograder.runs.room import Classroom
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from tests.grading import (
    LAB05,
    SEARCH,
    Class,
    cell_of,
    code_cell,
    command_environment,
    course_copy,
    released,
    solved,
)

pytestmark = pytest.mark.sandbox

ANSWERS = {
    "right": "4",
    "minus": "0",
    "linear": "3",
    "none": "0",
}
SOURCES = {
    "minus": "def largest_micro_batch(run, upper): return -upper",
    "linear": (
        "def largest_micro_batch(run, upper):\n"
        "    for m in range(upper):\n"
        "        try: run(m + 1)\n"
        "        except peakmem.OutOfMemory: return m\n"
        "    return upper"
    ),
}


def submission(answer):
    if answer == "right":
        return solved()
    notebook = released()
    if answer in SOURCES:
        cell_of(notebook, f"{SEARCH}-solution")["source"] = SOURCES[answer]
    return notebook


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    copy = course_copy(tmp_path_factory.mktemp("course"))
    Course(copy).secret()
    return copy


@pytest.fixture(scope="module")
def handed_in(course, tmp_path_factory):
    """Eight submissions and one invalid one; the last ones take longer."""
    room = Class(tmp_path_factory.mktemp("class"), course)
    for number in range(2):
        for answer in ANSWERS:
            room.hand_in(f"{answer}-{number}", submission(answer))
    room.hand_in("not-a-notebook", b"%PDF-1.7")
    return room


@pytest.fixture(scope="module")
def graded(handed_in):
    """The class, graded without being disturbed."""
    done = handed_in.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    return handed_in


def elsewhere(room, folder):
    """The same submissions and the same course, with an out folder of their own."""
    shutil.copytree(room.submitted, folder / "submitted")
    return Class(folder, room.course)


def grades(room):
    return (room.out / "grades.csv").read_bytes()


def pages(room):
    return {path.parent.name: path.read_bytes() for path in room.out.glob("feedback/*/*.html")}


def journal(room):
    """The journal's entries, with the time each was written."""
    folder = room.out / "journal" / LAB05
    return {p.stem: p.stat().st_mtime_ns for p in folder.glob("*.entry") if p.name[0] != "."}


def test_everybody_gets_what_they_earned(graded):
    for answer, score in ANSWERS.items():
        for number in range(2):
            assert graded.row(f"{answer}-{number}")["score"] == score
    assert graded.row("not-a-notebook")["status"] == "quarantined"
    assert "a PDF" in graded.row("not-a-notebook")["message"]


def test_grading_again_runs_only_what_is_new_or_damaged(graded, tmp_path):
    room = elsewhere(graded, tmp_path)
    shutil.copytree(graded.out, room.out)
    before = journal(room)
    entry = room.out / "journal" / LAB05 / "linear-0.entry"
    entry.write_bytes(entry.read_bytes()[:100])
    entry.with_name("minus-0.entry").unlink()
    shutil.rmtree(room.submitted / "none-0")
    room.hand_in("none-0", submission("right"))
    assert room.grade("--workers", "1").returncode == 0
    changed = {name for name, written in journal(room).items() if written != before[name]}
    assert changed == {"linear-0", "minus-0", "none-0"}
    assert room.row("none-0")["score"] == "4"
    expected, found = ([r for r in of.rows() if r["student"] != "none-0"] for of in (graded, room))
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2", "3", "4"])
def test_five_runs_give_byte_identical_grades_and_pages(graded, tmp_path, workers):
    other = elsewhere(graded, tmp_path)
    assert other.grade("--workers", workers).returncode == 0
    assert grades(other) == grades(graded)
    assert pages(other) == pages(graded)


@pytest.mark.slow
def test_a_class_that_was_killed_goes_on_where_it_stopped(graded, tmp_path):
    room = elsewhere(graded, tmp_path)
    # One student's waiting code keeps one worker busy, while the other one continues.
    slow = submission("right")
    slow["cells"].insert(4, code_cell("import time; time.sleep(25)") | {"id": "slow"})
    room.hand_in("a-slow-one", slow)
    begun = subprocess.Popen(
        room.command("--workers", "2"),
        env=command_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _until(lambda: len(journal(room)) >= 3, begun)
    below = psutil.Process(begun.pid).children(recursive=True)
    assert len(below) >= 4, "a fork server, two workers and their sandboxes"
    begun.send_signal(signal.SIGKILL)
    begun.wait()
    _, alive = psutil.wait_procs(below, timeout=600)
    assert alive == [], "whatever is left after so long stays for ever"
    done_before = journal(room)
    assert 3 <= len(done_before) < 10
    assert not (room.out / "grades.csv").exists()

    shutil.rmtree(room.submitted / "a-slow-one")
    assert room.grade("--workers", "2").returncode == 0
    done = journal(room)
    assert {name: done[name] for name in done_before} == done_before, "none was run again"
    assert grades(room) == grades(graded)
    assert pages(room) == pages(graded)


@pytest.mark.slow
def test_a_worker_that_is_killed_in_a_cell_costs_its_submission_nothing(course, tmp_path):
    room = Class(tmp_path, course)
    waits = submission("right")
    cell = code_cell("import subprocess; subprocess.run(['sleep', '20.25'])") | {"id": "slow"}
    waits["cells"].insert(4, cell)
    room.hand_in("ada", waits)
    room.hand_in("eve", submission("linear"))
    command = room.command("--workers", "1", "--cell-seconds", "5")
    begun = subprocess.Popen(command, env=command_environment(), stdout=subprocess.DEVNULL)
    _until(lambda: _sleeper(begun.pid), begun)
    above = _sleeper(begun.pid).parents()
    next(p for p in above if "multiprocessing.forkserver" in " ".join(p.cmdline())).kill()
    assert begun.wait(timeout=600) == 0
    assert (room.row("ada")["score"], room.row("eve")["score"]) == ("4", "3")


def _sleeper(pid):
    """The process below `pid` by which a student's cell shows that it runs."""
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.cmdline() == ["sleep", "20.25"]:
                return process
    return None


def _until(condition, process):
    deadline = time.monotonic() + 600
    while not condition():
        assert process.poll() is None, "the command ended before the sign that was waited for"
        assert time.monotonic() < deadline
        os.sched_yield()


@pytest.mark.slow
def test_other_secrets_draw_other_cases(graded, tmp_path):
    room = Class(tmp_path, course_copy(tmp_path / "course"))
    shutil.copytree(graded.submitted / "minus-0", room.submitted / "minus-0")
    assert room.grade().returncode == 0
    assert room.row("minus-0")["message"] != graded.row("minus-0")["message"]


def _path_without(folder: Path, *programs: str) -> dict[str, str]:
    """An environment whose PATH has everything of /usr/bin and /bin but these programs."""
    folder.mkdir()
    for name in ("setpriv", "bwrap", "env", "ps"):
        found = shutil.which(name)
        if found and name not in programs:
            (folder / name).symlink_to(found)
    return {"PATH": str(folder)}


@pytest.mark.parametrize(
    ("program", "package"), [("bwrap", "bubblewrap"), ("setpriv", "util-linux")]
)
def test_without_a_layer_nothing_is_graded_and_the_remedy_is_named(
    graded, tmp_path, program, package
):
    room = elsewhere(graded, tmp_path)
    done = room.grade(environment=_path_without(tmp_path / "bin", program))
    assert done.returncode == 2
    assert f"{program} is not installed: `apt-get install {package}`" in done.stderr
    assert "--insecure" in done.stderr
    assert not room.out.exists()


@pytest.mark.slow
def test_insecure_grades_without_it_and_marks_every_result(course, tmp_path):
    room = Class(tmp_path, course)
    room.hand_in("ada", submission("right"))
    room.hand_in("eve", submission("minus"))
    room.hand_in("pdf", b"%PDF")
    done = room.grade("--insecure", environment=_path_without(tmp_path / "bin", "bwrap"))
    assert done.returncode == 0, done.stderr
    assert (room.row("ada")["score"], room.row("eve")["score"]) == ("4", "0")
    assert all(row["message"].startswith("NOT ISOLATED: ") for row in room.rows())
    assert "NOT ISOLATED" in done.stdout


def test_a_grade_stays_where_every_worker_dies(tmp_path, monkeypatch):
    def all_die(items, *_arguments):
        yield from ((item, pool.Failure("2 grading processes died.")) for item in items)

    monkeypatch.setattr(pool, "run_all", all_die)
    room = Classroom(LAB05, OutFolder(tmp_path / "out"), COURSE, b"secret", keeps_old=True)
    handed = []
    for student in ("ada", "lin"):
        path = tmp_path / "in" / student / LAB05 / f"{LAB05}.ipynb"
        write_whole(path, b"as it was graded")
        handed.append((student, path))
        result = Result(student, LAB05, "graded", "", ())
        Journal(room.out).keep(result, b"as it was graded", {}, {"isolated": True})
    handed[1][1].write_bytes(b"handed in anew")
    assert list(grade_all(room, handed, 2)) == ["ada", "lin"]
    ends = [Journal(room.out).verdicts(SubmissionKey(student, LAB05)).end for student, _ in handed]
    assert ends == ["graded", "failed"]


@pytest.mark.parametrize(
    "busy",
    [pytest.param({1}, id="once", marks=pytest.mark.slow), pytest.param({1, 4}, id="again")],
)
def test_what_the_machine_was_too_busy_for_is_graded_again_after_the_others(
    tmp_path, monkeypatch, busy
):
    graded = []

    def in_this_process(items, work, workers):
        with work.make_worker(0) as grade:
            for student, path in items:
                graded.append((student, workers))
                patience = 0 if len(graded) in busy else 3
                monkeypatch.setattr("autograder.base.limits._PATIENCE", patience)
                yield (student, path), grade((student, path))

    monkeypatch.setattr(pool, "run_all", in_this_process)
    room = Classroom(LAB05, OutFolder(tmp_path / "out"), COURSE, b"secret")
    handed = []
    for student in ("ada", "kay", "lin"):
        path = tmp_path / "in" / student / LAB05 / f"{LAB05}.ipynb"
        write_whole(path, json.dumps(submission("right")).encode())
        handed.append((student, path))
    assert list(grade_all(room, handed, 2)) == ["kay", "lin", "ada"]
    assert graded == [("ada", 2), ("kay", 2), ("lin", 2), ("ada", 1)]
    ada, kay = (
        Journal(room.out).verdicts(SubmissionKey(student, LAB05)).verdicts
        for student in ("ada", "kay")
    )
    assert {verdict.status for verdict in kay} == {"right"}
    assert {verdict.status for verdict in ada} == {"could_not_judge" if 4 in busy else "right"}
