"""What everything stands on: files, cleaning, limits, where a course is."""

from autograder.base.course import COURSE, Course
from autograder.base.damage import Damaged
from autograder.base.errors import AutograderError

__all__ = ["COURSE", "AutograderError", "Course", "Damaged"]
