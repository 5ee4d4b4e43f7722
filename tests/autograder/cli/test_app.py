"""The command line: invalid input gets one sentence, and exit status 2."""

import errno
import json
import os
import re
import subprocess
import sys

import pytest
from sqlalchemy.exc import OperationalError

import peakmem
from autograder.base.course import Course
from autograder.base.limits import Limits
from autograder.cli import app
from autograder.cli.report import PROBLEM, USAGE
from autograder.grading.registry import find_task, lab_named
from autograder.sandbox.host.protection import Protection
from tests.grading import LAB05, SEARCH

GRADE = ("grade", LAB05)


def run(capsys, *arguments):
    """The exit status, standard output and standard error."""
    status = app.main([str(argument) for argument in arguments])
    return status, *capsys.readouterr()


def commands(capsys):
    """The names of all commands, in order, as the whole help lists them."""
    status, out, _ = run(capsys, "--help-all")
    assert status == 0
    return re.findall(r"^  (\w+)  ", out, re.MULTILINE)


def refused(capsys, *arguments):
    """The one sentence that refuses a command."""
    status, out, err = run(capsys, *arguments)
    assert status == USAGE
    assert out == ""
    assert "Traceback" not in err
    return err.strip().splitlines()[-1]


def test_a_lab_that_there_is_not_is_named_with_those_that_there_are(capsys, tmp_path):
    (tmp_path / "in").mkdir()
    said = refused(
        capsys, "grade", "lab99_x", "--submitted", tmp_path / "in", "--out", tmp_path / "out"
    )
    assert "'lab99_x'" in said
    assert LAB05 in said


@pytest.mark.parametrize("lab", ["lab05_accumulation2", "..", "tasks", "lab0"])
def test_what_names_no_lab_or_several_is_refused(capsys, tmp_path, lab):
    (tmp_path / "in").mkdir()
    said = refused(capsys, "grade", lab, "--submitted", tmp_path / "in", "--out", tmp_path / "out")
    assert LAB05 in said
    assert repr(lab) in said


@pytest.mark.parametrize("word", ["lab05", "lab05_acc", LAB05])
def test_a_lab_may_be_named_by_its_beginning(capsys, monkeypatch, tmp_path, word):
    ways = {
        "grade": ("--submitted", tmp_path / "missing", "--out", tmp_path / "out"),
        "collect": (tmp_path / "missing", "--submitted", tmp_path, "--out", tmp_path / "out"),
        "gradescope": ("--out", tmp_path / "missing" / "lab.zip"),
        "sample": ("--students", 1, "--out", tmp_path / "class"),
        "build": ("--check",),
        "release": ("--out", tmp_path / "zips"),
        "mutate": (),
    }
    ways["regrade"] = ways["grade"]
    said = refused(capsys, "grade", word, *ways["grade"])
    assert f"<student>/{LAB05}/{LAB05}.ipynb" in said

    def stop(named, _course):
        raise ValueError(f"it is {lab_named(named)}")

    monkeypatch.setattr("autograder.grading.registry.lab_named", stop)
    for command, rest in ways.items():
        assert refused(capsys, command, word, *rest).endswith(f"it is {LAB05}"), command
    assert refused(capsys, "bank", tmp_path, "--lab", word).endswith(f"it is {LAB05}")


def test_an_assignment_whose_name_begins_another_is_meant_itself(tmp_path):
    for name in ("ps1", "ps10"):
        (tmp_path / "source" / name).mkdir(parents=True)
        (tmp_path / "source" / name / "a.ipynb").write_text("{}")
    assert lab_named("ps1", Course(tmp_path)) == "ps1"
    assert lab_named("ps10", Course(tmp_path)) == "ps10"
    with pytest.raises(ValueError, match="'ps' matches the labs ps1, ps10"):
        lab_named("ps", Course(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (("grde",), "(did you mean 'grade'?)"),
        (("grade", "lab5", "--submited", "in"), "(did you mean '--submitted'?)"),
        (("grade", "lab5", "--submitted", "in", "--out", "out"), f"Did you mean {LAB05}?"),
        (("gradescope", "lab05_acumulation", "--out", "zip"), f"Did you mean {LAB05}?"),
        (("gradescope", "lab1", "--out", "zip"), "Did you mean lab01_formats?"),
    ],
)
def test_what_was_most_likely_meant_is_asked(capsys, arguments, near):
    assert near in refused(capsys, *arguments)


def test_nothing_is_asked_where_no_name_is_near(capsys):
    assert "Did you mean" not in refused(capsys, "xyzzy")


@pytest.mark.parametrize(
    ("task", "near"),
    [
        ("lab05-largest_microbatch", f"Did you mean {SEARCH}?"),
        ("lab5-largest_micro_batch", "Did you mean lab05?"),
    ],
)
def test_the_task_that_was_most_likely_meant_is_asked(task, near):
    with pytest.raises(ValueError, match="no task") as caught:
        find_task(task)
    assert str(caught.value).endswith(near)


def test_a_folder_that_there_is_not_is_named_with_the_layout(capsys, tmp_path):
    missing = tmp_path / "missing"
    said = refused(capsys, *GRADE, "--submitted", missing, "--out", tmp_path / "out")
    assert str(missing) in said
    assert f"<student>/{LAB05}/{LAB05}.ipynb" in said
    assert not (tmp_path / "out").exists()


def test_a_course_without_its_notebooks_says_what_to_build(capsys, tmp_path):
    (tmp_path / "in" / "ada" / LAB05).mkdir(parents=True)
    arguments = ("--submitted", tmp_path / "in", "--out", tmp_path / "out")
    said = refused(capsys, "--course", tmp_path, *GRADE, *arguments)
    assert f"autograder build {LAB05}" in said


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--workers", value) for value in ("0", "-1", "two", "1.5")),
        *(("--cell-seconds", value) for value in ("0", "-1", "nan", "inf", "soon")),
        *((option, "0") for option in ("--submission-seconds", "--memory-gib")),
    ],
)
def test_a_number_that_is_none_is_refused_by_name(capsys, option, value):
    said = refused(capsys, *GRADE, "--submitted", "in", "--out", "out", f"{option}={value}")
    assert option in said
    assert value in said


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ((), "a command"),
        (("grade",), "LAB"),
        ((*GRADE, "--out", "out"), "--submitted"),
        (("audit",), "OUT"),
    ],
)
def test_what_is_missing_is_named(capsys, arguments, missing):
    assert f"{missing} is required" in refused(capsys, *arguments)


@pytest.mark.parametrize(("arguments", "command"), [((), ""), (("mark",), ""), (GRADE, "grade")])
def test_a_program_reads_why_its_command_line_is_refused(capsys, arguments, command):
    status, out, err = run(capsys, *arguments, "--json")
    data = json.loads(out)
    assert (status, data["status"], data["command"]) == (USAGE, USAGE, command)
    assert data["problems"] == [err.strip().splitlines()[-1]]


def test_a_fault_of_the_grader_is_not_taken_for_work_done(capsys, monkeypatch, tmp_path):
    def broken(_out):
        return {}["gone"]

    monkeypatch.setattr("autograder.publish.wholeness.require_whole", broken)
    status, out, err = run(capsys, "audit", tmp_path, "--json")
    (problem,) = json.loads(out)["problems"]
    assert (status, "bug in the grader" in problem) == (USAGE, True)
    assert "Traceback" in err


def test_a_course_that_there_is_not_is_named(capsys, tmp_path):
    missing = tmp_path / "missing"
    assert f"--course {missing} is not a folder" in refused(
        capsys, "--course", missing, "export", tmp_path
    )


def test_a_reader_that_has_seen_enough_is_no_error():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "autograder", "audit", "nowhere", "--json"]
    with os.fdopen(write, "w") as closed:
        done = subprocess.run(
            command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == PROBLEM
    assert "Broken" not in done.stderr


def test_the_limits_reach_the_sandbox_and_their_defaults_are_those_of_the_help(
    capsys, monkeypatch, tmp_path
):
    seen = []

    def stop(_course, running, *_rest):
        seen.append(running.limits)
        raise ValueError("enough")

    monkeypatch.setattr("autograder.cli.grading.classroom_of", stop)
    given = (*GRADE, "--submitted", tmp_path, "--out", tmp_path / "out", "--insecure")
    options = ("--cell-seconds", "2.5", "--submission-seconds", "60", "--memory-gib", "0.5")
    refused(capsys, *given)
    refused(capsys, *given, *options)
    assert seen == [
        Limits(),
        Limits(cell_seconds=2.5, submission_seconds=60, memory_bytes=2**29),
    ]
    _, out, _ = run(capsys, "grade", "--help-all")
    told = [float(number) for number in re.findall(r"\[default:\s+([\d.]+)\]", out)]
    assert told == [seen[0].cell_seconds, seen[0].submission_seconds, 2]


def test_audit_of_a_folder_that_holds_nothing_is_a_problem_not_a_crash(capsys, tmp_path):
    status, _, err = run(capsys, "audit", tmp_path / "nothing")
    assert status == PROBLEM
    assert "run `autograder grade` again" in err


def test_its_version_is_the_librarys(capsys):
    assert run(capsys, "--version") == (0, f"autograder {peakmem.__version__}\n", "")


def test_without_a_command_each_is_named_within_a_terminal(capsys):
    status, out, err = run(capsys)
    assert (status, out) == (USAGE, "")
    assert err.splitlines()[-1].startswith("autograder: a command is required")
    assert len(err.splitlines()) < 24
    assert max(map(len, err.splitlines())) <= 80
    assert set(commands(capsys)) <= set(re.findall(r"\w+", err))
    daily = re.search(r"^Grade a class:\n((?:  .*\n)+)", err, re.MULTILINE)[1]
    assert re.findall(r"^  (\w+)  ", daily, re.MULTILINE) == list(commands(capsys))[:5]
    assert "\nCheck the grader: doctor, demo, sample, bank, mutate\n" in err


def test_every_commands_help_fits_a_terminal(capsys):
    assert {"build", "grade", "audit", "bank", "sample", "doctor"} <= set(commands(capsys))
    for command in commands(capsys):
        status, out, _ = run(capsys, command, "--help")
        assert status == 0
        assert {"--json", "--quiet", "--verbose"} <= set(re.findall(r"--\w+", out))
        assert len(out.splitlines()) < 24, command
        assert max(map(len, out.splitlines())) <= 80, command


def test_the_usage_has_what_a_command_needs(capsys):
    needed = {
        "grade": "grade LAB --submitted DIR --out OUT [OPTION]...",
        "formgrade": "formgrade [OPTION]... OUT [JUPYTER]...",  # what follows OUT is passed on
        "build": "build [LAB]... [OPTION]...",
    }
    for command, usage in needed.items():
        _, out, _ = run(capsys, command, "--help")
        assert out.startswith(f"Usage: autograder {usage}\n")


# Options with special cases


@pytest.mark.parametrize(
    ("given", "rounds"),
    [
        ([], None),
        (["--measure"], 3),
        (["--measure", "--json"], 3),
        (["--measure", "2"], 2),
        (["--measure=5", "-q"], 5),
    ],
)
def test_measure_may_do_without_its_number(capsys, monkeypatch, given, rounds):
    asked = []
    guarded = Protection(kernel_memory="cgroup", budgets_hold=True)
    monkeypatch.setattr("autograder.sandbox.host.isolation.missing_layers", list)
    monkeypatch.setattr("autograder.sandbox.host.protection.protection", lambda: guarded)
    monkeypatch.setattr("autograder.cli.trying.has_gpu", lambda: False)

    def measure(_course, times, _output):
        asked.append(times)
        return []

    monkeypatch.setattr("autograder.cli.trying._measure", measure)
    assert run(capsys, "doctor", *given)[0] == 0
    assert asked == ([] if rounds is None else [rounds])


@pytest.mark.parametrize("command", ["release", "sample", "gradescope"])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(capsys, tmp_path, command):
    (tmp_path / "file").write_text("")
    given = {"release": [], "sample": [LAB05, "--students", "1"], "gradescope": [LAB05]}[command]
    said = refused(capsys, command, *given, "--out", tmp_path / "file" / "new" / "x.zip")
    assert "can't be written (Not a directory); give another" in said


def test_a_zip_that_is_a_folder_is_refused(capsys, tmp_path):
    said = refused(capsys, "gradescope", LAB05, "--out", tmp_path)
    assert f"{tmp_path} is a folder; give the name of a file" in said


@pytest.mark.parametrize("argument", ["", "--out="])
def test_an_empty_argument_is_not_the_current_folder(capsys, argument):
    said = refused(capsys, "audit", argument)
    assert said.startswith("autograder: an argument is empty; give its value")


def test_a_class_has_a_largest_size(capsys, tmp_path):
    said = refused(capsys, "sample", LAB05, "--students", "99999999999", "--out", tmp_path)
    assert "a whole number of at least 1 and at most 100000, but got '99999999999'" in said


def test_formgrade_passes_on_what_comes_after_its_folder(monkeypatch, tmp_path):
    started = []

    def start(_program, words, _environment):
        started.extend(words)
        raise SystemExit  # as nothing comes after it

    monkeypatch.setattr("autograder.cli.formgrading.require_graded", lambda _out: None)
    monkeypatch.setattr("os.chdir", lambda _path: None)
    monkeypatch.setattr("os.execve", start)
    options = ["--no-browser", "--port=9999", "--help", "-q"]
    with pytest.raises(SystemExit):
        app.main(["formgrade", str(tmp_path), *options])
    assert started[-4:] == options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port=99999999"], "--port=99999999 is not a port; give a number from 0 to 65535"),
        (["--no-browser", "--port", "65536"], "--port=65536 is not a port"),
        (["--ServerApp.port=-1"], "--port=-1 is not a port"),
        (["--port=abc"], "--port=abc is not a port"),
        (["--ip=999.1.2.3"], "--ip=999.1.2.3 is not an address of this machine; leave it out"),
    ],
)
def test_formgrade_refuses_an_address_at_which_nothing_can_listen(capsys, tmp_path, options, said):
    assert f"autograder formgrade: {said}" in refused(capsys, "formgrade", tmp_path, *options)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "Free some space on the disk"),
        (OSError(errno.EDQUOT, "Disk quota exceeded", "x"), "Free some space on the disk"),
        (OSError(errno.EROFS, "Read-only file system", "x"), "Mount its disk"),
        (PermissionError(errno.EACCES, "Permission denied", "secret"), "Let this user read"),
        (OperationalError("", {}, Exception("database or disk is full")), "Free some space"),
        (OperationalError("", {}, Exception("attempt to write a readonly database")), "Let this"),
    ],
)
def test_an_error_of_the_disk_is_told_with_its_remedy(capsys, monkeypatch, tmp_path, error, remedy):
    def stop(_out):
        raise error

    monkeypatch.setattr("autograder.cli.reviewing.require_graded", stop)
    said = refused(capsys, "export", tmp_path)
    assert f". {remedy}" in said
    assert said.endswith("and run the same command again: it continues where it stopped")


def test_formgrade_names_the_export_of_its_course(capsys, monkeypatch, tmp_path):
    def start(*_given):
        raise SystemExit  # as nothing comes after it

    monkeypatch.setattr("autograder.cli.formgrading.require_graded", lambda _out: None)
    monkeypatch.setattr("os.chdir", lambda _path: None)
    monkeypatch.setattr("os.execve", start)
    course, out = tmp_path / "own course", tmp_path / "out"
    course.mkdir()
    with pytest.raises(SystemExit):
        app.main(["--course", str(course), "formgrade", str(out)])
    said = " ".join(capsys.readouterr().out.split())
    assert said.endswith(f"autograder --course '{course}' export {out}")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("autograder re", {"release", "rejudge", "regrade", "repair"}),
        ("autograder grade lab05", {LAB05}),
        ("autograder build lab05", {LAB05}),
        ("autograder export --par", {"--partial"}),
        ("autograder grade --help", {"--help", "--help-all"}),
    ],
)
def test_a_shell_completes_commands_labs_and_options(capsys, monkeypatch, words, expected):
    monkeypatch.setenv("_AUTOGRADER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    with pytest.raises(SystemExit) as end:
        app.main([])
    assert end.value.code == 0
    assert set(capsys.readouterr().out.split()) == expected


def test_labs_of_another_course_are_completed(capsys, monkeypatch, tmp_path):
    (tmp_path / "source/ps1").mkdir(parents=True)
    (tmp_path / "source/ps1/a.ipynb").write_text("{}")
    monkeypatch.setenv("_AUTOGRADER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"autograder --course {tmp_path} grade p")
    monkeypatch.setenv("COMP_CWORD", "4")
    with pytest.raises(SystemExit):
        app.main([])
    assert capsys.readouterr().out.split() == ["ps1"]


def test_help_loads_no_results_folder_and_no_torch():
    code = "import sys; from autograder.cli.app import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {"typer", "autograder.cli.reviewing"} <= loaded
    heavy = ("torch", "matplotlib", "IPython", "sqlalchemy", "pydantic", "autograder.store")
    assert loaded & set(heavy) == set()
