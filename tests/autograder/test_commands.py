"""The commands as an instructor and a script see them, on a class of four."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.base.course import COURSE, Course
from autograder.base.limits import Limits
from autograder.cli import app, grading, report
from autograder.cli.report import OK, PROBLEM, SCHEMA, STOPPED, USAGE
from autograder.grading.registry import TaskLab
from autograder.grading.unanswered import NO_ANSWER
from autograder.model.result import Result
from autograder.model.submission import SubmissionKey
from autograder.runs.grader import Grader
from autograder.runs.room import Classroom
from autograder.store.fingerprint import terms_of
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from autograder.store.scores import scores_in
from autograder.trials import demo
from autograder.trials.sampled_class import ClassFolder
from peakmem.show.cli import terminal
from tests.autograder.small_class import DOUBLE, HALVE, graded, verdict
from tests.grading import (
    LAB01,
    LAB05,
    REPOSITORY,
    Class,
    cell_of,
    command_environment,
    course_copy,
    released,
    solved,
)

TASK, EXPLAIN = "lab01-integer_value", "lab01-explain"
GUIDE = (REPOSITORY / "docs" / "instructors.md").read_text(encoding="utf-8")
COMMON = {"command", "schema", "status", "problems", "remarks", "paths"}


def of_release(notebook: dict[str, Any], release: str) -> dict[str, Any]:
    return notebook | {"metadata": {**notebook["metadata"], "peakmem": {"release": release}}}


@pytest.fixture(scope="module")
def class_(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """Graded by the real command: all right, nothing written, copied into two cells, a PDF."""
    course = course_copy(tmp_path_factory.mktemp("course"))
    Course(course).secret()
    room = Class(tmp_path_factory.mktemp("class"), course, LAB01)
    twice = released(LAB01)
    cell = cell_of(twice, f"{TASK}-solution")
    twice["cells"] += [cell | {"source": "def integer_value(*_): return 0"} for _ in range(2)]
    room.hand_in("ada", of_release(solved(LAB01), "0.1.0+aaaaaaaa"))
    room.hand_in("kim", of_release(released(LAB01), "0.1.0+bbbbbbbb"))
    room.hand_in("lin", twice)
    room.hand_in("pdf", b"%PDF-1.7")
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    return room


@pytest.fixture
def room(class_: Class, tmp_path: Path) -> Class:
    """A copy of the graded class, for a test to change."""
    return class_.copied(tmp_path / "class")


def command(room: Class, *arguments: object, said: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*(sys.executable, "-m", "autograder", "--course", room.course), *map(str, arguments)],
        env=command_environment(),
        input=said,
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )


def read(done: subprocess.CompletedProcess[str], status: int = OK) -> dict[str, Any]:
    """The object that a command printed, which has to be all of its standard output."""
    data: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == data["status"] == status, done.stderr
    assert data.keys() >= COMMON
    assert [key for key in data if f"`{key}`" not in GUIDE] == [], "the guide names all keys"
    assert data["schema"] == SCHEMA
    for sentence in (*data["problems"], *data["remarks"]):
        assert sentence in done.stderr
    return data


def on_class(room: Class, name: str, *more: str, said: str = "") -> dict[str, Any]:
    where = (LAB01, "--submitted", room.submitted, "--out", room.out, "--workers", "2")
    return read(command(room, name, *where, "--json", *more, said=said))


# On a terminal

COMMANDS = [
    "collect lab01 submissions.zip --submitted new --out {out}",
    "audit {out}",
    "explain {out} ada lab01-encode_fp32 --verbose",
    "rejudge {out}",
    "audit nowhere",
    "grade lab01 --submitted nowhere --out {out}",
]


@pytest.mark.sandbox
def test_no_line_is_wider_than_a_terminal(
    room: Class, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(room.out.parent)
    monkeypatch.setattr(terminal, "fitted", lambda text, _to: terminal.wrapped(text, 80))
    with zipfile.ZipFile("submissions.zip", "w") as file:
        file.writestr(f"adalovelace_1_2_{LAB01}.ipynb", json.dumps(released(LAB01)))
        file.writestr("adalovelace_1_3_notes.txt", "These are notes.")
    wide = []
    for line in COMMANDS:
        app.main(["--course", str(room.course), *line.format(out=room.out.name).split()])
        out, err = capsys.readouterr()
        assert out + err, line
        wide += [
            said for said in (out + err).splitlines() if len(said) > 80 and " " in said.strip()
        ]
    assert wide == []


# As JSON


@pytest.mark.sandbox
def test_grading_says_to_a_program_what_it_says_to_a_person(room: Class) -> None:
    data = on_class(room, "grade")
    (lab,) = data["labs"]
    assert lab["ends"] == {"graded": 3, "quarantined": 1, "failed": 0}
    # 25 of 25, and two who earned nothing.
    assert (lab["mean_points"], lab["median_points"], lab["max_points"]) == (8.333, 0, 25)
    assert lab["releases"] == {"": 1, "0.1.0+aaaaaaaa": 1, "0.1.0+bbbbbbbb": 1}
    needs = {(need["kind"], need["student"], need["count"]) for need in data["manual_review"]}
    assert needs == {("quarantined", "pdf", 1), ("manual", "", 1), ("repaired", "lin", 1)}
    assert all(Path(path).exists() for path in data["paths"].values())
    assert room.row("kim", TASK)["release"] == "0.1.0+bbbbbbbb"


@pytest.mark.sandbox
def test_an_answer_in_words_that_nobody_wrote_is_0_by_itself(room: Class) -> None:
    row = room.row("kim", EXPLAIN)
    assert (row["score"], row["max_score"], row["status"]) == ("0", "2", "not answered")
    assert row["message"] == NO_ANSWER
    assert NO_ANSWER in room.page("kim")
    assert "waiting for manual grading" not in room.page("kim")
    assert room.row("ada", EXPLAIN)["score"] == ""
    assert "2 points are waiting for manual grading" in room.page("ada")
    assert scores_in(OutFolder(room.out))["kim", LAB01][EXPLAIN] == 0.0
    assert "No score changes." in command(room, "rejudge", room.out).stdout
    assert room.row("kim", EXPLAIN) == row
    analysed = (room.out / "grades.csv").with_name("export") / "statistics.csv"
    read(command(room, "export", room.out, "--json"))
    assert EXPLAIN not in analysed.read_text()


@pytest.mark.sandbox
def test_what_reviews_a_class_says_it_as_json(room: Class) -> None:
    audit = read(command(room, "audit", room.out, "--json"))
    assert (audit["submissions"], audit["problems"]) == ({LAB01: 4}, [])
    export = read(command(room, "export", room.out, "--json"))
    assert (export["students"], export["feedback_pages"]) == (4, 4)
    assert export["empty_canvas_cells"] == {LAB01: 2}
    assert all(Path(path).exists() for path in export["paths"].values())
    explain = read(command(room, "explain", room.out, "ada", TASK, "--json"))
    assert explain["lines"][0].startswith(f"ada, {TASK}: correct, 2 of 2 points")
    rejudge = read(command(room, "rejudge", room.out, "--json"))
    assert (rejudge["written"], rejudge["changes"]) == (True, [])
    assert sum(rejudge["verdicts"]["judged"].values()) == 33
    (room.out / "feedback" / "ada" / f"{LAB01}.html").unlink()
    lost = read(command(room, "audit", room.out, "--json"), PROBLEM)
    assert "it has no feedback page" in lost["problems"][0]


def test_the_doctor_answers_a_program(tmp_path: Path) -> None:
    done = command(Class(tmp_path, REPOSITORY), "doctor", "--json")
    data = json.loads(done.stdout)
    assert data["can_grade"] is (done.returncode == OK)
    assert isinstance(data["gpu"], bool)
    if data["can_grade"]:
        assert data["kernel_memory"] in {"cgroup", "filter"}
        assert isinstance(data["budgets_hold"], bool)


@pytest.mark.sandbox
def test_a_bank_says_which_answers_are_graded_otherwise(tmp_path: Path) -> None:
    folder = tmp_path / "bank" / LAB01 / "integer_value"
    folder.mkdir(parents=True)
    (folder / "right_none.py").write_text('"""Is not right."""\ndef integer_value(*_): return 0\n')
    (folder / "wrong_none.py").write_text('"""Is wrong."""\ndef integer_value(*_): return 0\n')
    room = Class(tmp_path, REPOSITORY)
    data = read(command(room, "bank", tmp_path / "bank", "--json", "--workers", "1"), PROBLEM)
    (lab,) = data["labs"]
    assert (lab["lab"], lab["graded"]) == (LAB01, 2)
    (problem,) = data["problems"]
    assert problem in lab["problems"]
    assert "right_none is right, but earned 0 of 2" in problem


@pytest.mark.sandbox
def test_the_demo_finds_a_score_that_is_not_true(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(*arguments: Any, **options: Any) -> ClassFolder:
        class_ = prepare(*arguments, **options)
        truth = class_.truth.read_text()
        first = truth.splitlines()[1]
        class_.truth.write_text(truth.replace(first, first.replace('"correct"', '"incorrect"')))
        return class_

    prepare = demo.prepare
    for module in ("autograder.content", "autograder.trials.demo"):
        monkeypatch.setattr(f"{module}.lab_names", lambda: [LAB01])
    monkeypatch.setattr(demo, "prepare", spoil)
    out = ("--out", str(tmp_path / "demo"), "--workers", "1", "--json")
    assert app.main(["demo", "--students", "1", *out]) == PROBLEM
    data = json.loads(capsys.readouterr().out)
    (difference,) = data["differences"]
    assert difference.endswith("status is 'correct', and the truth is 'incorrect'")
    assert data["verdict"] == "1 graded, 0 lost, 1 scores differ from the truth"


@pytest.mark.slow
@pytest.mark.sandbox
def test_the_demo_of_all_labs_has_true_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["demo", "--students", "14", "--out", str(tmp_path / "demo")]) == OK
    assert "14 graded, 0 lost, scores equal the truth" in capsys.readouterr().out


def test_what_cannot_be_taken_is_an_object_too(tmp_path: Path) -> None:
    (tmp_path / "submitted").mkdir()
    room = Class(tmp_path, REPOSITORY, "lab99_x")
    where = ("--submitted", room.submitted, "--out", room.out)
    data = read(command(room, "grade", "lab99_x", *where, "--json", "--insecure"), USAGE)
    (problem,) = data["problems"]
    assert "no lab named 'lab99_x'" in problem


def test_no_report_has_a_number_that_json_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="JSON"):
        report.show(report.Report(data={"mean": float("nan")}), "grade", as_json=True)


@pytest.mark.parametrize("as_json", [True, False])
def test_what_is_printed_on_the_way_is_not_in_the_object(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    def audit(_out: object) -> list[str]:
        print("on the way")
        return ["a problem"]

    whole(monkeypatch, audit)
    assert app.main(["audit", "OUT", *(["--json"] if as_json else [])]) == PROBLEM
    out, err = capsys.readouterr()
    assert "a problem" in err
    if as_json:
        assert (json.loads(out)["submissions"], "on the way" in err) == ({"a": 1}, True)
    else:
        assert out == "on the way\na: 1 submission taken in\n"


def whole(monkeypatch: pytest.MonkeyPatch, audit: Callable[[object], list[str]]) -> None:
    """Let any folder pass for a whole one that holds a submission, which `audit` looks at."""
    monkeypatch.setattr("autograder.publish.audit.audit", audit)
    monkeypatch.setattr("autograder.publish.wholeness.require_whole", lambda _out: None)
    monkeypatch.setattr("autograder.store.roll.taken", lambda _out: [SubmissionKey("ada", "a")])


@pytest.mark.parametrize("option", ["-q", "--quiet"])
def test_quiet_is_problems_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    whole(monkeypatch, lambda _out: ["a problem"])
    assert app.main(["audit", "OUT", option]) == PROBLEM
    assert capsys.readouterr() == ("", "a problem\n")
    assert app.main(["audit", "OUT", option, "--json"]) == PROBLEM
    assert json.loads(capsys.readouterr().out)["problems"] == ["a problem"]


@pytest.mark.parametrize("option", [[], ["-v"], ["--verbose"]])
def test_verbose_says_where_an_error_came_from(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: list[str]
) -> None:
    assert app.main(["export", str(tmp_path), *option]) == USAGE
    told = capsys.readouterr().err
    assert "contains no grades" in told
    assert ("Traceback" in told) is bool(option)


def test_ctrl_c_ends_with_130_and_says_that_the_same_command_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_out: object) -> list[str]:
        signal.raise_signal(signal.SIGINT)  # to this thread, so that it comes at once
        raise AssertionError("the signal comes before this")

    whole(monkeypatch, stop)
    # A shell starts what runs in the background with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert app.main(["audit", "OUT", "--json"]) == STOPPED
    finally:
        signal.signal(signal.SIGINT, before)
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == STOPPED
    assert "Run the same command again to continue." in err


def test_every_commands_help_names_the_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["grade", "--help"], ["audit", "--help"]):
        assert app.main(arguments) == OK
        last = capsys.readouterr().out.splitlines()[-1]
        assert re.findall(r"\d+", last) == list(map(str, (OK, PROBLEM, USAGE, STOPPED)))


# A lab that changed


def with_a_new_given_cell(room: Class) -> Class:
    """The class in a course whose lab has another release: reading integers cannot succeed."""
    course = course_copy(room.folder / "course")
    shutil.copy(room.course / ".course_secret", course)
    path = course / "labs" / LAB01 / f"{LAB01}.ipynb"
    release = json.loads(path.read_bytes())
    given = next(
        cell
        for cell in release["cells"]
        if cell["cell_type"] == "code"
        and cell["metadata"].get("nbgrader", {}).get("locked")
        and not cell["metadata"]["nbgrader"]["grade"]
        and "demo" not in cell["metadata"].get("tags", ())
    )
    given["source"] += ["\nimport builtins\nbuiltins.int = None"]
    path.write_text(json.dumps(release))
    return replace(room, course=course)


def entries(room: Class) -> dict[str, bytes]:
    return {p.stem: p.read_bytes() for p in room.out.glob(f"journal/{LAB01}/*.entry")}


@pytest.mark.sandbox
def test_after_a_lab_changed_grade_keeps_what_is_graded_and_regrade_asks(room: Class) -> None:
    changed, before, grades = with_a_new_given_cell(room), entries(room), room.rows()
    shutil.rmtree(room.submitted / "kim")
    room.hand_in("kim", solved(LAB01))
    data = on_class(changed, "grade")
    after = entries(room)
    assert {name for name in after if after[name] != before[name]} == {"kim"}, "a resubmission"
    assert [r for r in room.rows() if r["student"] == "ada"] == [
        r for r in grades if r["student"] == "ada"
    ]
    (remark,) = data["remarks"]
    assert remark.startswith(f"{LAB01}: 3 of the grades were made under another version of the lab")
    where = f"--submitted {room.submitted} --out {room.out}"
    assert f"`autograder --course {changed.course} regrade {LAB01} {where}`" in remark
    answered_no = on_class(changed, "regrade", said="n\n")
    assert (answered_no["written"], entries(room)) == (False, after)
    answered_yes = on_class(changed, "regrade", said="y\n")
    assert answered_yes["written"]
    assert answered_yes["changes"] == answered_no["changes"] != []
    assert {change["student"] for change in answered_yes["changes"]} == {"ada"}
    assert on_class(changed, "grade")["remarks"] == []


@pytest.mark.sandbox
def test_a_run_that_was_cut_off_before_the_change_goes_on_after_it(room: Class) -> None:
    changed, before = with_a_new_given_cell(room), entries(room)
    (room.out / "journal" / LAB01 / "lin.entry").unlink()
    on_class(changed, "grade")
    assert {name for name, data in entries(room).items() if data != before[name]} == {"lin"}


class FakeSandbox:
    def __init__(self, has_gpu: bool) -> None:
        self.has_gpu = has_gpu

    def close(self) -> None:
        pass


INSIDE = terms_of(LAB05, COURSE, Limits(), isolated=True)


@pytest.mark.parametrize(
    ("held", "gpu_missed", "room", "done"),
    [
        # Results that `grade` keeps: other limits, another lab, no GPU then; not unprotected runs.
        (INSIDE, False, {"keeps_old": True}, True),
        (INSIDE | {"lab": "old", "limits": {}}, False, {"keeps_old": True}, True),
        (INSIDE, True, {"keeps_old": True, "gpu": True}, True),
        (INSIDE | {"isolated": False}, False, {"keeps_old": True}, False),
        (INSIDE, False, {"keeps_old": True, "isolated": False}, True),
        # Results that `regrade` takes over from an interrupted run: those it would have made.
        (INSIDE, False, {}, True),
        (INSIDE | {"lab": "old"}, False, {}, False),
        (INSIDE, True, {}, True),
        (INSIDE, True, {"gpu": True}, False),
    ],
)
def test_what_is_graded_already(
    tmp_path: Path, held: dict[str, Any], gpu_missed: bool, room: dict[str, bool], done: bool
) -> None:
    gpu = room.get("gpu", False)
    given = {name: value for name, value in room.items() if name != "gpu"}
    class_ = Classroom(LAB05, OutFolder(tmp_path), COURSE, b"secret" * 6, **given)  # type: ignore[arg-type]
    last = verdict(HALVE, "needs_gpu" if gpu_missed else "right")
    result = graded(verdicts=(verdict(DOUBLE), last))
    Journal(OutFolder(tmp_path)).keep(result, b"raw", {}, held)
    with Grader(class_, 0) as grader:
        grader._sandboxes[frozenset({"torch"})] = FakeSandbox(gpu)  # type: ignore[assignment]
        assert grader._is_done("ada", b"raw") is done
        assert not grader._is_done("ada", b"handed in again")


@pytest.mark.parametrize("measured", [True, False])
def test_freed_memory_is_kept_where_no_task_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: bool
) -> None:
    asked: list[dict[str, Any]] = []

    def make(*_: Any, **options: Any) -> Any:
        asked.append(options)
        return FakeSandbox(has_gpu=False)

    monkeypatch.setattr("autograder.runs.grader.Sandbox", make)
    monkeypatch.setattr(TaskLab, "measured", measured)
    with Grader(Classroom(LAB01, OutFolder(tmp_path), COURSE, b"secret" * 6), 0) as grader:
        grader.start()
    assert [options["measured"] for options in asked] == [measured]


@pytest.mark.parametrize("gpu", [True, False])
def test_a_gpu_that_there_is_now_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: bool
) -> None:
    monkeypatch.setattr(grading, "has_gpu", lambda: gpu)
    result = Result("ada", LAB05, "graded", verdicts=(verdict(HALVE, "needs_gpu"),))
    room = Classroom(LAB05, OutFolder(tmp_path), COURSE, b"secret" * 6)
    these = grading.Submissions(LAB05, Path("a class"), OutFolder(tmp_path))
    told = grading._kept(room, [result], COURSE, these)
    assert len(told) == gpu
    assert all(f"`autograder regrade {LAB05} --submitted 'a class'" in line for line in told)


# Folders that are none


def place(folder: Path, file: str) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text("{}")


FILE = f"{LAB01}/{LAB01}.ipynb"


@pytest.mark.parametrize(
    ("prepare", "out", "said"),
    [
        (lambda s: place(s, f"submitted/ada/{FILE}"), "out", f"contains no student's {FILE}"),
        (lambda s: None, "out", "but it is empty"),
        (lambda s: place(s, "taken.json"), "out", "is a results folder"),
        (lambda s: place(s, f"ada/{FILE}"), "in/out", "each folder belongs to a student"),
        (lambda s: place(s, f"ada/{FILE}"), "in", "each folder belongs to a student"),
        (
            lambda s: place(s, f"ada/{FILE}"),
            f"in/ada/{FILE}",
            "each folder belongs to a student",
        ),
        (lambda s: place(s.parent, "file"), "file", "but it is empty"),
    ],
)
def test_a_wrong_folder_is_told_before_anything_is_written(
    tmp_path: Path, prepare: Callable[[Path], None], out: str, said: str
) -> None:
    submitted = tmp_path / "in"
    submitted.mkdir()
    prepare(submitted)
    before = sorted(tmp_path.rglob("*"))
    room = Class(tmp_path, REPOSITORY)
    where = ("--submitted", submitted, "--out", tmp_path / out)
    data = read(command(room, "grade", LAB01, *where, "--json", "--insecure"), USAGE)
    assert said in data["problems"][0]
    assert sorted(tmp_path.rglob("*")) == before


def test_an_out_that_cannot_be_a_folder_is_named_with_the_remedy(tmp_path: Path) -> None:
    place(tmp_path, f"in/ada/{FILE}")
    place(tmp_path, "file")
    room = Class(tmp_path, REPOSITORY)
    where = ("--submitted", tmp_path / "in", "--out", tmp_path / "file")
    data = read(command(room, "grade", LAB01, *where, "--json", "--insecure"), USAGE)
    assert "can't be written (File exists); give another OUT" in data["problems"][0]


@pytest.mark.sandbox
def test_grades_of_other_questions_are_noticed_before_grading(room: Class) -> None:
    path = room.out / "source" / LAB01 / f"{LAB01}.ipynb"
    notebook = json.loads(path.read_bytes())
    notebook["cells"] = [
        c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") != TASK
    ]
    path.write_text(json.dumps(notebook))
    where = ("--submitted", room.submitted, "--out", room.out)
    data = read(command(room, "grade", LAB01, *where, "--json"), USAGE)
    assert f"with other questions ({TASK})" in data["problems"][0].replace(
        "from when it had", "with"
    )


@pytest.mark.sandbox
def test_other_notebooks_and_strangers_are_told_of(room: Class) -> None:
    folder = room.submitted / "ada" / LAB01
    shutil.copy(folder / f"{LAB01}.ipynb", folder / f"{LAB01}-Copy1.ipynb")
    (room.out / "semester.toml").write_text('roster = "roster.csv"\n')
    (room.out / "roster.csv").write_text("id\nada\nkim\npdf\nzoe\n")
    data = on_class(room, "grade")
    assert data["remarks"] == [
        f"{LAB01}: only {LAB01}.ipynb is graded; other notebooks were not opened: "
        f"ada ({LAB01}-Copy1.ipynb).",
        f"{LAB01}: submissions from students who aren't on the roster: lin.",
    ]
    folder.parent.rename(aside := room.submitted.with_name("aside"))
    left = on_class(room, "grade")
    assert left["remarks"][0].startswith(
        f"{LAB01}: collected earlier but no longer in {room.submitted}, so not counted: ada."
    )
    sent = read(command(room, "export", room.out, "--json"))
    with zipfile.ZipFile(sent["paths"]["feedback_zip"]) as pages:
        assert sorted({name.split("/")[1] for name in pages.namelist()}) == ["kim", "lin", "pdf"]
    aside.rename(folder.parent)
    assert on_class(room, "grade")["labs"] == data["labs"]
    assert data["labs"][0]["not_submitted"] == 1
