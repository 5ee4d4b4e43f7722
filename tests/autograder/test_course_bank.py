"""The course's own bank, graded in the sandbox by the command that an instructor runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from autograder.content import lab_names
from tests.answers import answers, write_answers

pytestmark = pytest.mark.sandbox
# The sandbox matters most to what is measured: these are the lab with the narrowest budget, and the
# one whose answers start processes.
EACH_TIME = {"lab03_adam", "lab08_shards"}


def assert_graded_as_it_says(bank: Path, lab: str, repository: Path) -> None:
    command = [sys.executable, "-m", "autograder", "bank", str(bank), "--lab", lab]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "graded, 0 problems" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("lab", lab_names())
def test_every_answer_of_the_bank_is_graded_as_it_says(lab: str, repository: Path) -> None:
    assert_graded_as_it_says(repository / "bank", lab, repository)


@pytest.mark.parametrize(
    "lab",
    [pytest.param(lab, marks=[pytest.mark.slow] * (lab not in EACH_TIME)) for lab in lab_names()],
)
def test_every_right_answer_of_the_bank_is_right_in_the_sandbox(
    lab: str, repository: Path, tmp_path: Path
) -> None:
    """There memory is watched from outside, and modules with answers are hidden.

    That the wrong ones are wrong, and for which mistake, is tried in this process by each lab.
    """
    write_answers(tmp_path, lab, (entry for entry in answers(lab) if entry.kind == "right"))
    assert_graded_as_it_says(tmp_path, lab, repository)
