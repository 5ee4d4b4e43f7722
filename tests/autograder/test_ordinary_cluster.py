"""An ordinary assignment graded by a real Dask cluster: the same grades as on one machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.autograder.small_assignment import NAME, PROBLEM1, hand_in, submission, write_course
from tests.faults.toy import Cluster, until_true
from tests.grading import command_environment, grade_command

pytest.importorskip("distributed", reason="needs the extra `cluster`")

pytestmark = pytest.mark.slow

PLOT = "import mine\nprint(mine.WORD, open('data.csv').readline())"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course, and a class's submissions."""
    root = write_course(tmp_path_factory.mktemp("course"))
    handed = {
        "right": submission(),
        "wrong": submission(square="return x", total="return 0"),
        "exits": submission(quiet="import os\nos._exit(3)"),
        "half": {PROBLEM1: submission()[PROBLEM1]},
        "files": submission(plot=PLOT),
    }
    for student, notebooks in handed.items():
        hand_in(root / "submitted", student, notebooks)
    files = root / "submitted/files" / NAME
    (files / "mine.py").write_text("WORD = 'theirs'\n")
    (files / "data.csv").write_text("0\n")
    return root


def grade(course: Path, out: Path, *more: str) -> None:
    done = subprocess.run(
        grade_command(course, NAME, course / "submitted", out, *more),
        env=command_environment(),
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_cluster_gives_the_grades_and_pages_that_one_machine_gives(
    course: Path, tmp_path: Path
) -> None:
    grade(course, tmp_path / "here", "--workers", "2")
    with Cluster(tmp_path) as dask:
        dask.worker()
        dask.worker("--nanny")
        until_true(lambda: dask.joined() == 2)
        grade(course, tmp_path / "there", "--scheduler", dask.address)
    same = ["grades.csv", *(f"feedback/{s}/{NAME}.html" for s in ("right", "wrong", "files"))]
    same += [f"autograded/files/{NAME}/{PROBLEM1}.ipynb"]
    for name in same:
        here, there = (tmp_path / place / name for place in ("here", "there"))
        assert here.read_bytes() == there.read_bytes(), name
    assert "theirs amount" in (tmp_path / "there" / same[-1]).read_text()
