"""The course's own bank, graded in the sandbox by the command that an instructor runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from autograder.isolation import missing_layers
from autograder.tasks import lab_names


@pytest.mark.skipif(sys.platform != "linux" or missing_layers() != [], reason="no sandbox here")
@pytest.mark.parametrize("lab", lab_names())
def test_every_answer_of_the_bank_is_graded_as_it_says(lab: str, repository: Path) -> None:
    command = [sys.executable, "-m", "autograder", "bank", "tests/bank", "--lab", lab]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "graded, 0 problems" in done.stdout
