"""One class, graded once without any fault: the result that every disturbed run has to reach."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograder.base.course import Course
from tests.faults.faulty import elsewhere, hand_in_all
from tests.grading import LAB05, Class, course_copy, released
from tests.sandbox import require_sandbox


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Class:
    require_sandbox()
    course = course_copy(tmp_path_factory.mktemp("course"))
    Course(course).secret()
    room = Class(tmp_path_factory.mktemp("undisturbed"), course)
    hand_in_all(room)
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    return room


@pytest.fixture(scope="session")
def earlier(undisturbed: Class, tmp_path_factory: pytest.TempPathFactory) -> Class:
    """The class, graded before the slow student replaced the submission."""
    room = elsewhere(undisturbed, tmp_path_factory.mktemp("earlier"))
    handed_in = room.submitted / "a-slow-one" / LAB05 / f"{LAB05}.ipynb"
    final = handed_in.read_bytes()
    handed_in.write_text(json.dumps(released()))
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    handed_in.write_bytes(final)
    return room


@pytest.fixture
def room(undisturbed: Class, tmp_path: Path) -> Class:
    """The class with nothing graded yet."""
    return elsewhere(undisturbed, tmp_path)


@pytest.fixture
def regraded(earlier: Class, tmp_path: Path) -> Class:
    """The class with the grades of `earlier`; one student's are out of date."""
    return elsewhere(earlier, tmp_path, graded=True)
