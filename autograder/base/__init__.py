"""The foundation: files, cleaning, limits, and the layout of a course."""

from autograder.base.course import COURSE, Course
from autograder.base.damage import Damaged
from autograder.base.errors import AutograderError

__all__ = ["COURSE", "AutograderError", "Course", "Damaged"]
