"""Decides what counts towards a lab's grade: all of it, or the core with the stretch as bonus.

The journal keeps the judge's verdicts; these rules apply to a copy at each publication.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from autograder.base.course import COURSE, Course
from autograder.content import full_id
from autograder.model.result import Result
from autograder.model.task import Verdict
from autograder.notebooks.questions import Question, questions_of
from autograder.rules.semester import Stretch, read_semester
from autograder.rules.waivers import waive, waivers
from autograder.store.out_folder import OutFolder

__all__ = ["Counting", "counting_of", "own_points"]

_STRETCH_LEFT_OUT = "The stretch doesn't count in this course."


@dataclass(frozen=True)
class Counting:
    """How the exercises of a course count."""

    #: How the stretch counts.
    stretch: Stretch = "required"
    #: The reasons why tasks are left out, by the task's name in its course.
    left_out: Mapping[str, str] = field(default_factory=dict)
    #: The reasons why everyone gets a task's points, likewise.
    waived: Mapping[str, str] = field(default_factory=dict)
    #: The course whose notebooks say which exercises are stretch.
    course: Course = COURSE

    def why_left_out(self, lab: str, task: str) -> str:
        """Return why a task doesn't count; empty if it does."""
        reason = self.left_out.get(full_id(lab, task), "")
        if not reason and self.stretch == "left_out" and task in _stretch(lab, self.course):
            return _STRETCH_LEFT_OUT
        return reason

    def max_points(self, lab: str, question: Question) -> float:
        """Return what a question adds to the lab's maximum: nothing for a bonus."""
        bonus = self.stretch == "bonus" and question.is_stretch
        return 0.0 if bonus or self.why_left_out(lab, question.id) else question.points

    def count(self, result: Result) -> Result:
        """Return the result as it counts: waivers and bonuses applied, left-out tasks removed."""
        verdicts = waive(result, self.waived).verdicts
        return replace(result, verdicts=tuple(self._counted(result.lab, v) for v in verdicts))

    def _counted(self, lab: str, verdict: Verdict) -> Verdict:
        why = self.why_left_out(lab, verdict.task)
        if why:
            return Verdict(
                task=verdict.task,
                status="left_out",
                earned={},
                max_points=0.0,
                message=f"Left out of your total: {why}",
            )
        if self.stretch == "bonus" and verdict.task in _stretch(lab, self.course):
            return replace(verdict, max_points=0.0)
        return verdict


def counting_of(out: OutFolder, course: Course) -> Counting:
    """Return how the course's exercises count in the results folder `out`."""
    semester = read_semester(out, None)
    return Counting(semester.stretch, semester.left_out, waivers(out), course)


def own_points(result: Result, course: Course) -> Result:
    """Return a counted result in which bonus exercises have their own maximum points, not 0."""
    most = {
        question.id: question.points for question in questions_of([result.lab], course)[result.lab]
    }
    verdicts = (
        v if v.status == "left_out" else replace(v, max_points=most.get(v.task, v.max_points))
        for v in result.verdicts
    )
    return replace(result, verdicts=tuple(verdicts))


@cache
def _stretch(lab: str, course: Course) -> frozenset[str]:
    """The ids of a lab's exercises beyond the core."""
    questions = questions_of([lab], course)[lab]
    return frozenset(question.id for question in questions if question.is_stretch)
