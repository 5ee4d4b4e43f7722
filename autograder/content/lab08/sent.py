"""The bytes that each rank has sent, counted by the kernel, or else reported by the rank."""

from __future__ import annotations

from collections.abc import Callable

from autograder.model.task import Answer, Finding

__all__ = ["between"]

_UNKNOWN = (
    "This machine doesn't report how many bytes your ranks sent. An instructor will look at this."
)
_ANOTHER_WAY = (
    "Your ranks sent fewer bytes than this exercise needs, so some went another way, such as "
    "through shared memory. An instructor will look at this."
)


def between(
    answer: Answer,
    least_bytes: float,
    most_bytes: float,
    say: Callable[[tuple[int, ...]], Finding],
) -> Finding:
    """Return the finding on whether no rank sent over `most_bytes`: `say(sent)` if one did.

    All ranks together must have sent `least_bytes`. A result with less traffic is in doubt.
    """
    sent = answer.rank_sent_bytes or _told(answer)
    if not sent:
        return Finding(False, doubt=_UNKNOWN)
    if max(sent) > most_bytes:
        return say(sent)
    return Finding(True) if sum(sent) >= least_bytes else Finding(False, doubt=_ANOTHER_WAY)


def _told(answer: Answer) -> tuple[int, ...]:
    """The ranks' own figures, if no grader observes them from outside."""
    told = answer.value.get("sent_bytes") if isinstance(answer.value, dict) else None
    if answer.memory or not isinstance(told, list):
        return ()
    return tuple(told) if all(type(each) is int for each in told) else ()
