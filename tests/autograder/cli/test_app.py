"""The command line: what it cannot take is told in one sentence, with exit status 2."""

import json
import os
import re
import subprocess
import sys

import pytest

import peakmem
from autograder.base.course import Course
from autograder.base.limits import Limits
from autograder.cli import app
from autograder.cli.common import limits_of, name_labs
from autograder.cli.report import PROBLEM, USAGE
from autograder.grading.registry import find_task, lab_named
from tests.grading import LAB05, SEARCH

GRADE = ("grade", LAB05)


def run(capsys, *arguments):
    """The exit status, and what stands on standard output and standard error."""
    try:
        status = app.main([str(argument) for argument in arguments])
    except SystemExit as end:  # argparse's way out
        status = end.code
    return status, *capsys.readouterr()


def refused(capsys, *arguments):
    """The one sentence in which a command is refused."""
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


@pytest.mark.parametrize("lab", ["lab05_accumulation2", "..", "tasks", "", "lab0"])
def test_what_names_no_lab_or_several_is_refused(capsys, tmp_path, lab):
    (tmp_path / "in").mkdir()
    said = refused(capsys, "grade", lab, "--submitted", tmp_path / "in", "--out", tmp_path / "out")
    assert LAB05 in said
    assert repr(lab) in said


@pytest.mark.parametrize("word", ["lab05", "lab05_acc", LAB05])
def test_a_lab_may_be_named_by_its_beginning(capsys, tmp_path, word):
    ways = {
        "grade": ("--submitted", tmp_path / "missing", "--out", tmp_path / "out"),
        "collect": (tmp_path / "missing", "--submitted", tmp_path, "--out", tmp_path / "out"),
        "gradescope": ("--out", tmp_path / "missing" / "lab.zip"),
        "sample": ("--students", 1, "--out", tmp_path / "class"),
        "build": ("--check",),
    }
    ways["regrade"] = ways["grade"]
    for command, rest in ways.items():
        options = app.parser().parse_args([command, word, *map(str, rest)])
        name_labs(options)
        named = options.labs if command == "build" else [options.lab]
        assert named == [LAB05], command
    said = refused(capsys, "grade", word, *ways["grade"])
    assert f"<student>/{LAB05}/{LAB05}.ipynb" in said


def test_an_assignment_whose_name_begins_another_is_meant_itself(tmp_path):
    for name in ("ps1", "ps10"):
        (tmp_path / "source" / name).mkdir(parents=True)
        (tmp_path / "source" / name / "a.ipynb").write_text("{}")
    assert lab_named("ps1", Course(tmp_path)) == "ps1"
    assert lab_named("ps10", Course(tmp_path)) == "ps10"
    with pytest.raises(ValueError, match="'ps' may be any of the labs ps1, ps10"):
        lab_named("ps", Course(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (("grde",), "Did you mean grade?"),
        (("grade", "lab5", "--submitted", "in", "--out", "out"), f"Did you mean {LAB05}?"),
        (("gradescope", "lab05_acumulation", "--out", "zip"), f"Did you mean {LAB05}?"),
    ],
)
def test_what_was_most_likely_meant_is_asked(capsys, arguments, near):
    assert refused(capsys, *arguments).endswith(near)


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
    "arguments", [(), ("mark",), ("grade",), (*GRADE, "--out", "out"), ("audit",)]
)
def test_what_is_missing_is_named(capsys, arguments):
    assert "required" in (said := refused(capsys, *arguments)) or "choose from" in said


@pytest.mark.parametrize(("arguments", "command"), [((), ""), (("mark",), ""), (GRADE, "grade")])
def test_a_program_reads_why_its_command_line_is_refused(capsys, arguments, command):
    status, out, err = run(capsys, *arguments, "--json")
    data = json.loads(out)
    assert (status, data["status"], data["command"]) == (USAGE, USAGE, command)
    assert data["problems"] == [err.strip().splitlines()[-1]]


def test_a_fault_of_the_grader_is_not_taken_for_work_done(capsys, monkeypatch, tmp_path):
    def broken(_options):
        return {}["gone"]

    monkeypatch.setattr("autograder.cli.reviewing._audit", broken)
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


def test_the_limits_reach_the_sandbox_and_their_defaults_are_those_of_the_help(capsys):
    parse = app.parser().parse_args
    given = (*GRADE, "--submitted", "in", "--out", "out")
    assert limits_of(parse(given)) == Limits()
    options = ("--cell-seconds", "2.5", "--submission-seconds", "60", "--memory-gib", "0.5")
    assert limits_of(parse([*given, *options])) == Limits(
        cell_seconds=2.5, submission_seconds=60, memory_bytes=2**29
    )
    _, out, _ = run(capsys, "grade", "--help")
    told = [float(number) for number in re.findall(r"\(default:\s+(\d+)\)", out)]
    defaults = Limits()
    expected = [defaults.cell_seconds, defaults.submission_seconds, defaults.memory_bytes / 2**30]
    assert told[-3:] == expected


def test_audit_of_a_folder_that_holds_nothing_is_a_problem_not_a_crash(capsys, tmp_path):
    status, _, err = run(capsys, "audit", tmp_path / "nothing")
    assert status == PROBLEM
    assert "run `autograder grade` again" in err


def test_its_version_is_the_librarys(capsys):
    assert run(capsys, "--version") == (0, f"autograder {peakmem.__version__}\n", "")


def test_without_a_command_each_is_told_in_one_line(capsys):
    status, out, err = run(capsys)
    assert (status, out) == (USAGE, "")
    listed = err.partition("commands:\n")[2].partition("\nexit status")[0].splitlines()
    groups = [line for line in listed if re.fullmatch(r"  \w[^:]*:", line)]
    commands = re.findall(r"^    (\w+) +\S", err.partition("\nexit status")[0], re.MULTILINE)
    parsers = app.parser()._subparsers._group_actions[0].choices
    assert sorted(commands) == sorted(parsers)
    assert len(listed) == len(groups) + len(commands)
    assert len(groups) > 1
    assert max(map(len, listed)) <= 80


def test_every_command_has_its_help(capsys):
    status, out, _ = run(capsys, "--help")
    assert status == 0
    commands = re.findall(r"^    (\w+)", out, re.MULTILINE)
    assert {"build", "grade", "audit", "bank", "sample", "doctor"} <= set(commands)
    for command in commands:
        assert run(capsys, command, "--help")[0] == 0
