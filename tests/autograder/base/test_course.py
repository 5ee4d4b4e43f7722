"""The course: its secret is made once, and a command line names it only if it has to."""

import pytest

from autograder.base.course import COURSE, Course


def test_the_secret_is_made_once_and_is_its_owners_alone(tmp_path):
    course = Course(tmp_path)
    secret = course.secret()
    assert len(secret) == 32
    assert course.secret_file.stat().st_mode & 0o777 == 0o600
    assert course.secret() == secret
    course.secret_file.write_text("not hexadecimal")
    with pytest.raises(ValueError, match=r"contains no secret; expected at least 32"):
        course.secret()


def test_a_command_line_names_every_course_but_the_graders_own(tmp_path):
    assert COURSE.command_options == []
    assert Course(COURSE.root / "labs" / "..").command_options == []
    assert Course(tmp_path).command_options == ["--course", str(tmp_path)]


def test_a_solved_notebook_alone_is_found_where_nothing_was_released(tmp_path):
    solved = tmp_path / "solutions" / "lab01" / "lab01.ipynb"
    solved.parent.mkdir(parents=True)
    solved.touch()
    assert Course(tmp_path).built_notebooks("lab01") == [solved]
