"""What all tests share: one thread each, and the same examples on every run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Tests run on several processes at once; a torch that takes all cores in each makes all slow.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A slow machine is no failure, and a test that passed here passes elsewhere.
settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")

collect_ignore = ["bank"]  # answers of students, which the grader runs in its sandbox


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder that holds course.py."""
    return Path(__file__).resolve().parent.parent
