"""What a feedback page says of one question: status, score and message."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.model.result import Result
from autograder.model.status import MANUAL, SCORED, UNANSWERED, capitalized, shown
from autograder.model.task import Verdict
from autograder.notebooks.questions import Question
from autograder.publish.export import points

__all__ = ["Mark", "mark_of"]

# No meaning hangs on a colour: each status has an icon, and its words beside it.
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
_MANUAL = "Your instructor grades this answer."
_GIVEN = "Your instructor gave these points."
_ENDS = {"quarantined", "failed"}  # in which nothing was judged
_NO_VERDICT = "The grader returned no verdict here. Your instructor will look at it."


@dataclass(frozen=True)
class Mark:
    """What the page says of one question."""

    id: str
    title: str
    status: str
    icon: str
    words: str
    score: str
    message: str
    mistake: str
    parts: tuple[tuple[str, float], ...]
    comment: str


def mark_of(
    question: Question,
    result: Result,
    verdict: Verdict | None,
    by_hand: float | None,
    comment: str,
) -> Mark:
    """Return what the page says of a question; manual points `by_hand` replace the grader's."""
    score, mistake = "-", ""
    parts: tuple[tuple[str, float], ...] = ()
    if result.end != "graded":
        status, message = str(result.end), ""
    elif question.by_person and verdict is None:
        status, message = MANUAL, _MANUAL
    elif verdict is None:
        status, message = "could_not_judge", _NO_VERDICT
    else:
        status, message = verdict.status, verdict.message
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
        words=capitalized(shown("could_not_judge" if status in _ENDS else status)),
        score=_score(score, question, verdict),
        message=message,
        mistake=mistake,
        parts=parts,
        comment=comment,
    )


def _score(score: str, question: Question, verdict: Verdict | None) -> str:
    if verdict is not None and verdict.status == "left_out":
        return "no"
    bonus = verdict is not None and not verdict.max_points
    return f"{score} of {points(question.points)}{' bonus' if bonus else ''}"
