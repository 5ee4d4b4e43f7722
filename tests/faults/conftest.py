"""One class, graded once without any fault: what every disturbed run has to come to."""

from __future__ import annotations

import sys

import pytest

from autograder.classroom import course_secret
from autograder.isolation import missing_layers
from tests.faults.faulty import hand_in_all
from tests.grading import Class, course_copy


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Class:
    if sys.platform != "linux" or missing_layers():
        pytest.skip("the sandbox cannot run here")
    course = course_copy(tmp_path_factory.mktemp("course"))
    course_secret(course / ".course_secret")
    room = Class(tmp_path_factory.mktemp("undisturbed"), course)
    hand_in_all(room)
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    return room
