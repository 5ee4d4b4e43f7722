"""Determines what a feedback page shows about one question: status, score and message."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.model.result import Result
from autograder.model.status import MANUAL, SCORED, UNANSWERED, capitalized, shown
from autograder.model.task import Verdict
from autograder.notebooks.questions import Question
from autograder.publish.grades_csv import judgement, points

__all__ = ["Mark", "mark_of"]

# Colour alone carries no meaning: each status also has an icon and words.
_ICONS = {
    "right": "✔",
    "partly": "◐",
    "wrong": "✘",
    "needs_gpu": "▣",
    "needs_isolation": "▣",
    "could_not_judge": "?",
    UNANSWERED: "∅",
    "left_out": "○",
    MANUAL: "✎",
    "quarantined": "?",
    "failed": "?",
}
_GIVEN = "Your instructor gave these points."
_GRADED = "Graded manually"
_ENDS = {"quarantined", "failed"}  # outcomes without any judgement


@dataclass(frozen=True)
class Mark:
    """The status, score and message of one question."""

    #: The question's id.
    id: str
    #: Its heading.
    title: str
    #: Its status, by id.
    status: str
    #: The status as an icon.
    icon: str
    #: The status in words.
    words: str
    #: The score, as `1 of 2`.
    score: str
    #: The message to the student.
    message: str
    #: The recognised mistake; empty if none.
    mistake: str
    #: Points by part, if there are several parts.
    parts: tuple[tuple[str, float], ...]
    #: The instructor's comment.
    comment: str


def mark_of(
    question: Question,
    result: Result,
    *,
    verdict: Verdict | None,
    by_hand: float | None,
    comment: str,
) -> Mark:
    """Return a question's mark; manual points `by_hand` replace the grader's."""
    score, mistake = "-", ""
    parts: tuple[tuple[str, float], ...] = ()
    status, message = judgement(question, result, verdict)
    if result.end != "graded":
        message = ""  # the page's head says it once
    elif verdict is not None:
        mistake = (verdict.mistake or "").replace("_", " ")
        if status in SCORED:
            score = points(verdict.points)
            parts = tuple(verdict.earned.items()) if len(verdict.earned) > 1 else ()
    if by_hand is not None:
        said = "" if verdict is None or result.end != "graded" else f" The grader said: {message}"
        status, message, score, parts = MANUAL, f"{_GIVEN}{said}", points(by_hand), ()
    return Mark(
        id=question.id,
        title=question.title,
        status=status,
        icon=_ICONS[status],
        words=_words(status, given=by_hand is not None),
        score=_score(score, question, verdict),
        message=message,
        mistake=mistake,
        parts=parts,
        comment=comment,
    )


def _words(status: str, *, given: bool) -> str:
    if given:
        return _GRADED
    return capitalized(shown("could_not_judge" if status in _ENDS else status))


def _score(score: str, question: Question, verdict: Verdict | None) -> str:
    if verdict is not None and verdict.status == "left_out":
        return "-"
    bonus = verdict is not None and not verdict.max_points
    return f"{score} of {points(question.points)}{' bonus' if bonus else ''}"
