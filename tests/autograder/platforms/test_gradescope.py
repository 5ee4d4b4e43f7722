"""results.json against Gradescope's own description, and the contents of the zip."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import stat
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from autograder.base.course import COURSE, Course
from autograder.model.note import Note
from autograder.model.result import Result
from autograder.model.task import Verdict
from autograder.notebooks.intake import is_student_id
from autograder.notebooks.questions import Question
from autograder.platforms.gradescope import results_of
from autograder.platforms.gradescope_container import _submit, student_id
from autograder.platforms.gradescope_zip import lab_secret, make_zip, points_of
from tests.gradescope.container import course_to_zip

LAB = "lab05_accumulation"
REPOSITORY = Path(__file__).resolve().parents[3]
SECRET = bytes.fromhex("5ec2e7" * 11)

# From the page "Autograder Specifications" of Gradescope's documentation. It allows no other keys:
# a misspelt one would be silently ignored.
_VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
_FORMAT = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
_TEST = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "score": {"type": "number"},
        "max_score": {"type": "number"},
        "status": {"enum": ["passed", "failed"]},
        "name": {"type": "string"},
        "name_format": _FORMAT,
        "number": {"type": "string"},
        "output": {"type": "string"},
        "output_format": _FORMAT,
        "tags": {"type": "array", "items": {"type": "string"}},
        "visibility": _VISIBILITY,
        "extra_data": {"type": "object"},
    },
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "score": {"type": "number"},
        "execution_time": {"type": "number"},
        "output": {"type": "string"},
        "output_format": _FORMAT,
        "test_output_format": _FORMAT,
        "test_name_format": _FORMAT,
        "visibility": _VISIBILITY,
        "stdout_visibility": _VISIBILITY,
        "extra_data": {"type": "object"},
        "tests": {"type": "array", "items": _TEST},
        "leaderboard": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "value"],
                "properties": {
                    "name": {"type": "string"},
                    "value": {"type": ["number", "string"]},
                    "order": {"enum": ["asc", "desc"]},
                },
            },
        },
    },
    # The total, or one score per test.
    "anyOf": [
        {"required": ["score"]},
        {"required": ["tests"], "properties": {"tests": {"items": {"required": ["score"]}}}},
    ],
}
VALIDATOR = Draft202012Validator(SCHEMA)

QUESTIONS = (
    Question("lab05-a", "5.1 Right", 4, is_manual=False),
    Question("lab05-b", "5.2 Partly", 3, is_manual=False),
    Question("lab05-c", "5.3 Doubtful", 2, is_manual=False),
    Question("lab05-d", "5.4 On a GPU", 5, is_manual=False),
    Question("lab05-e", "5.5 Lost", 1, is_manual=False),
    Question("lab05-f", "5.6 In words", 2, is_manual=True),
    Question("lab05-g", "5.7 In ranks", 6, is_manual=False),
)


def verdict(name: str, status: Any, of: float, message: str = "Because.", **earned: float):
    return Verdict(f"lab05-{name}", status, earned or {"value": 0.0}, of, message)


VERDICTS = (
    verdict("a", "right", 4, "Right.", value=3, speed=1),
    verdict("b", "partly", 3, value=2, speed=0),
    verdict("c", "could_not_judge", 2, "The meter saw less than the system."),
    verdict("d", "needs_gpu", 5, "This exercise needs a GPU."),
    verdict("g", "needs_isolation", 6, "In this exercise processes communicate."),
)
GRADED = Result(
    "s", LAB, "graded", verdicts=VERDICTS, notes=(Note("repair", "One cell was put back."),)
)


def by_name(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {test["name"].split(" (")[0]: test for test in results["tests"]}


def test_the_schema_finds_what_gradescope_would_not_take() -> None:
    good = {"score": 1.0, "tests": [{"score": 1.0, "max_score": 1.0, "name": "a"}]}
    assert VALIDATOR.is_valid(good)
    for bad in (
        {"tests": [{"name": "a"}]},  # no score anywhere
        {"score": "1"},
        {"score": 1, "tests": [{"score": 1, "status": "right"}]},
        {"score": 1, "tests": [{"number": 1}]},
        {"score": 1, "stdout_visibility": "never"},
        {"score": 1, "outputs": "misspelt"},
    ):
        assert not VALIDATOR.is_valid(bad), bad


def test_what_was_judged_has_its_points_and_the_total_is_theirs() -> None:
    results = results_of(GRADED, QUESTIONS)
    VALIDATOR.validate(results)
    tests = by_name(results)
    assert [(t["score"], t["max_score"], t["status"]) for t in results["tests"][:2]] == [
        (4, 4, "passed"),
        (2, 3, "failed"),
    ]
    assert results["score"] == 6
    assert results["output"].startswith("6 of the 7 points that were judged.")
    assert tests["5.2 Partly"]["output"] == "Because.\nvalue: 2\nspeed: 0"
    assert "One cell was put back." in results["output"]


def test_what_nobody_judged_has_no_score_and_says_what_it_waits_for() -> None:
    results = results_of(GRADED, QUESTIONS)
    waiting = results["tests"][2:]
    assert [test["name"] for test in waiting] == [
        "5.3 Doubtful (not judged, 2 points)",
        "5.4 On a GPU (needs a GPU, 5 points left out)",
        "5.5 Lost (not judged, 1 point)",
        "5.6 In words (manual grading, 2 points)",
        "5.7 In ranks (needs isolation, 6 points left out)",
    ]
    for test in waiting:
        assert not {"score", "max_score", "status"} & set(test)
    assert "The meter saw less" in waiting[0]["output"]
    assert "5 points are waiting for manual grading" in results["output"]
    assert "5 points need a GPU" in results["output"]
    assert "6 points need a machine with Linux namespaces" in results["output"]


@pytest.mark.parametrize(("end", "shown"), [("quarantined", True), ("failed", False)])
def test_what_was_not_graded_is_no_zero_of_the_students(end: Any, shown: bool) -> None:
    results = results_of(Result("s", LAB, end, "It is a picture."), QUESTIONS)
    VALIDATOR.validate(results)
    assert results["score"] == 0
    assert "the 0 isn't a grade" in results["output"]
    assert ("It is a picture." in results["output"]) == shown
    assert not [test for test in results["tests"] if "score" in test]


def test_what_the_grader_prints_is_hidden_and_nobody_is_ranked() -> None:
    results = results_of(GRADED, QUESTIONS)
    assert results["stdout_visibility"] == "hidden"
    assert "leaderboard" not in results
    assert {test["visibility"] for test in results["tests"]} == {"visible"}


def test_code_that_ran_outside_the_sandbox_is_marked() -> None:
    results = results_of(Result("s", LAB, "graded", verdicts=VERDICTS, isolated=False), QUESTIONS)
    assert "NOT ISOLATED" in results["output"]
    assert results["tests"][0]["output"].startswith("NOT ISOLATED")


@given(
    message=st.text(max_size=60),
    title=st.text(max_size=20),
    start=st.sampled_from(["", "=", "+", "-", "@", "\t=", "\x1b[31m=", " =cmd|' /C calc'!A0"]),
    points=st.floats(0, 3),
)
def test_every_text_is_shown_as_it_is_and_none_is_a_formula(
    message: str, title: str, start: str, points: float
) -> None:
    question = Question("lab05-a", start + title, 3, is_manual=False)
    found = verdict("a", "partly", 3, start + message, value=points)
    result = Result("s", LAB, "graded", verdicts=(found,), notes=(Note("repair", start + message),))
    for of in (result, Result("s", LAB, "failed", start + message)):
        results = results_of(of, [question])
        VALIDATOR.validate(results)
        written = json.dumps(results, allow_nan=False).encode("ascii")
        assert json.loads(written) == results
        texts = [results["output"]]
        texts += [text for test in results["tests"] for text in (test["name"], test["output"])]
        for text in texts:
            assert not text.lstrip().startswith(("=", "+", "-", "@"))
            assert all(c.isprintable() or c == "\n" for c in text)
    assert {results[key] for key in results if key.endswith("_format")} == {"text"}


def test_a_text_without_end_is_cut() -> None:
    found = verdict("a", "wrong", 4, "x" * 10**6)
    (test,) = results_of(Result("s", LAB, "graded", verdicts=(found,)), QUESTIONS[:1])["tests"]
    assert len(test["output"]) < 10_000
    assert "cut after" in test["output"]


# Submissions on Gradescope


def test_a_student_is_who_gradescope_says(tmp_path: Path) -> None:
    metadata = tmp_path / "submission_metadata.json"
    for users, name in (
        ([{"id": 12, "email": "a@b.c"}, {"id": 7}], "gradescope-7-12"),
        ([{"id": "x/../y"}], "gradescope"),
        ("nobody", "gradescope"),
        ([{"id": 10**40} for _ in range(9)], None),
    ):
        metadata.write_text(json.dumps({"users": users}))
        found = student_id(metadata)
        assert is_student_id(found)
        assert name in (None, found)
    assert student_id(tmp_path / "none") == "gradescope"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["lab.ipynb"], ["lab.ipynb"]),
        (["my lab (1).ipynb", "notes.txt"], ["lab.ipynb"]),
        (["lab.ipynb", "old.ipynb"], ["lab.ipynb", "old.ipynb"]),
        (["lab/lab.ipynb"], ["lab.ipynb"]),
        (["notes.txt"], []),
    ],
)
def test_the_notebook_is_found_among_what_was_uploaded(
    tmp_path: Path, files: list[str], found: list[str]
) -> None:
    for name in files:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("{}")
    _submit(tmp_path / "in", tmp_path / "out", "lab")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == found


def test_links_pipes_and_floods_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/lab.ipynb").write_text("secret")
    (tmp_path / "in/lab.ipynb").symlink_to(tmp_path / "secret")
    (tmp_path / "in/folder").symlink_to(tmp_path / "folder")
    os.mkfifo(tmp_path / "in/pipe.ipynb")
    (tmp_path / "in/folder.ipynb").mkdir()
    _submit(tmp_path / "in", tmp_path / "out", "lab")
    assert list((tmp_path / "out").iterdir()) == []


# The zip


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, zipfile.ZipInfo]]:
    folder = tmp_path_factory.mktemp("gradescope")
    path = folder / "autograder.zip"
    release = make_zip(Course(course_to_zip(folder, LAB, SECRET.hex())), LAB, SECRET, path)
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("autograder.json")) == {"lab": LAB, "release": release}
        return path.read_bytes(), {entry.filename: entry for entry in archive.infolist()}


def read(held: tuple[bytes, dict[str, zipfile.ZipInfo]], name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(held[0])) as archive:
        return archive.read(name)


def test_both_scripts_lie_at_the_top_and_may_be_run(held: Any) -> None:
    for name in ("setup.sh", "run_autograder"):
        assert read(held, name).startswith(b"#!/usr/bin/env bash\n")
        assert stat.S_IMODE(held[1][name].external_attr >> 16) == 0o755
        assert b"\r" not in read(held, name)
        checked = subprocess.run(["bash", "-n"], input=read(held, name), check=False)
        assert checked.returncode == 0


def test_it_holds_both_wheels_and_one_lab(held: Any) -> None:
    wheels = [name for name in held[1] if name.startswith("wheels/")]
    assert sorted(name.split("/")[1].split("-")[0] for name in wheels) == [
        "peakmem",
        "peakmem_autograder",
    ]
    for wheel in wheels:
        with zipfile.ZipFile(io.BytesIO(read(held, wheel))) as inner:
            names = inner.namelist()
        if "autograder" in wheel:
            assert "autograder/platforms/gradescope_container.py" in names
            assert "autograder/cli/platforms.py" in names
    labs = {name.split("/")[2] for name in held[1] if name.startswith(("course/labs/", "course/s"))}
    assert labs == {LAB}
    assert not [name for name in held[1] if ".course_secret" in name or "checkpoints" in name]


def test_what_both_wheels_need_is_asked_for_but_not_themselves(held: Any) -> None:
    needed = read(held, "requirements.txt").decode().split("\n")
    assert {"torch>=2.8", "nbgrader>=0.9.6", "tqdm>=4.66", "matplotlib>=3.9"} <= set(needed)
    assert not [line for line in needed if line.startswith(("peakmem", "pytest"))]


def test_the_courses_secret_stays_and_the_labs_own_goes(held: Any) -> None:
    secret = bytes.fromhex(read(held, "secret").decode())
    assert secret == hmac.new(SECRET, f"gradescope {LAB}".encode(), hashlib.sha256).digest()
    assert secret != lab_secret(SECRET, "lab01_formats")
    assert stat.S_IMODE(held[1]["secret"].external_attr >> 16) == 0o600
    for name in held[1]:
        data = read(held, name)
        assert SECRET not in data
        assert SECRET.hex().encode() not in data


def test_a_stale_lab_makes_no_zip(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lab99"):
        make_zip(COURSE, "lab99_none", SECRET, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_points_are_those_of_the_notebook() -> None:
    of = points_of(COURSE, "lab04_checkpointing")
    source = json.loads(
        (REPOSITORY / "solutions/lab04_checkpointing/lab04_checkpointing.ipynb").read_bytes()
    )
    marks = [cell["metadata"].get("nbgrader", {}) for cell in source["cells"]]
    total = sum(mark.get("points", 0) for mark in marks if mark.get("grade"))
    assert of.graded + of.manual + of.gpu == total
    assert of.gpu > 0
