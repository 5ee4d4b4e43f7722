"""The statuses of an exercise: the ids that code uses, and the words that people read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

__all__ = [
    "JUDGED",
    "MANUAL",
    "NEEDS",
    "NOT_SUBMITTED",
    "SCORED",
    "UNANSWERED",
    "capitalized",
    "shown",
    "status_of",
]

#: A question that the instructor grades manually.
MANUAL = "manual"
#: An exercise of a student on the roster without a submission.
NOT_SUBMITTED = "not_submitted"
#: A manual answer that was left as it was released: 0 points, and nothing to read.
UNANSWERED: Literal["unanswered"] = "unanswered"
#: The statuses of an exercise whose answers were judged.
JUDGED = frozenset({"right", "partly", "wrong"})
#: The statuses that have a score.
SCORED = JUDGED | {UNANSWERED}
#: What the grading machine lacked, by the status of the exercises that it couldn't judge.
NEEDS: Mapping[Literal["needs_gpu", "needs_isolation"], str] = {
    "needs_gpu": "a GPU",
    "needs_isolation": "a machine with Linux namespaces",
}

# The one place where ids become words, for a verdict's status, a submission's end, or these.
_WORDS = {
    "right": "correct",
    "partly": "partially correct",
    "wrong": "incorrect",
    "could_not_judge": "not judged",
    "needs_gpu": "needs a GPU",
    "needs_isolation": "needs isolation",
    UNANSWERED: "not answered",
    "left_out": "left out",
    MANUAL: "manual grading",
    NOT_SUBMITTED: "not submitted",
    "graded": "graded",
    "quarantined": "quarantined",
    "failed": "grading failed",
}
_IDS = {word: status for status, word in _WORDS.items()}
_AT_FORMAT_0 = {"for_a_person": MANUAL, "not_handed_in": NOT_SUBMITTED}


def shown(status: str) -> str:
    """Return a status in the words that people read.

    >>> shown("partly"), shown("needs_gpu")
    ('partially correct', 'needs a GPU')
    """
    return _WORDS[status]


def capitalized(words: str) -> str:
    """Return words capitalised for the start of a line: `Needs a GPU`."""
    return words[:1].upper() + words[1:]


def status_of(text: str) -> str:
    """Return the status id for a file's text, such as "correct", or for an id of an older format.

    Other texts are returned unchanged.

    >>> status_of("partially correct"), status_of("partly"), status_of("great")
    ('partly', 'partly', 'great')
    """
    return _IDS.get(text) or _AT_FORMAT_0.get(text, text)
