"""Judges a task's answers and returns a verdict. No student code runs here."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from autograder.base.plain_text import plain_text
from autograder.model.banned_uses import Use
from autograder.model.task import (
    CALLS_UNWRITTEN,
    NOT_WRITTEN,
    Answer,
    Case,
    Finding,
    Status,
    Task,
    Verdict,
)
from peakmem.core.errors import NotDefined
from peakmem.core.serialization import PlainError

__all__ = [
    "could_not_judge",
    "draw",
    "draw_again",
    "judge",
    "judge_answer",
    "judge_safely",
    "refuse",
]

_ALLOWED = (
    "A solution may use torch, numpy, modules of Python that only compute (math, itertools, "
    "functools, collections, dataclasses and such), and peakmem.errors, peakmem.units"
)
_REMEDY = "Use only these. Cells that this solution doesn't use don't count."
_MAX_QUOTED = 1500  # characters
_BESIDE_SOLUTIONS = (
    "For this score the exercise ran with the instructor's solutions to the exercises that it "
    "builds on, because it earned no more with yours."
)
_OF_MISUSE = frozenset({"AttributeError", "IndexError", "KeyError", "TypeError", "ValueError"})
_CORNERS = "try the corner cases that the exercise mentions."
_CHECK = "Check the parameters it takes and what it returns."
_DOUBT = "The measurement can't be confirmed. An instructor will look at this."


def draw(task: Task, secret: bytes, student: str, submission: bytes) -> list[Case]:
    """Return the cases that one submission of one student is graded on.

    An HMAC of all four arguments seeds them, so regrading draws the same cases, and feedback on one
    attempt doesn't give away the cases of the next.
    """
    return draw_again(task, secret, student, hashlib.sha256(submission).digest())


def draw_again(task: Task, secret: bytes, student: str, submission_digest: bytes) -> list[Case]:
    """Return the cases of a submission, given only the SHA-256 digest of its bytes."""
    parts = (task.id.encode(), student.encode(), submission_digest)
    digest = hmac.new(secret, b"\0".join(parts), hashlib.sha256).digest()
    return task.cases(np.random.default_rng(int.from_bytes(digest, "big")))


def judge(task: Task, cases: Sequence[Case], answers: Sequence[Answer]) -> Verdict:
    """Return the verdict on `answers`, one for each of `cases`.

    A part is earned if every case that decides it passes. A doubtful part isn't earned, and makes
    the whole verdict `could_not_judge` unless another part is clearly wrong. Raises ValueError if
    the task's judge has no finding for a part that a case decides.
    """
    found = [judge_answer(task, c, a) for c, a in zip(cases, answers, strict=True)]
    failed = [
        (case, part, finding)
        for case, by_part in zip(cases, found, strict=True)
        for part, finding in by_part.items()
        if not finding.ok
    ]
    left: dict[str, float] = {}
    for _, part, finding in failed:
        left[part] = min(finding.points, left.get(part, finding.points))
    earned = {part: left.get(part, points) for part, points in _paying(task).items()}
    beside = f" {_BESIDE_SOLUTIONS}" if any(a.beside_solutions for a in answers) else ""
    if not failed:
        return _verdict(task, "right", f"Right.{beside}", earned)
    doubts = [finding.doubt for _, _, finding in failed if finding.doubt]
    if doubts and all(finding.doubt for _, _, finding in failed):
        return _verdict(task, "could_not_judge", doubts[0], earned)
    wrong = [entry for entry in failed if not entry[2].doubt]
    passed = [finding for by_part in found for finding in by_part.values() if finding.ok]
    mistake = _recognise(task, [finding for _, _, finding in wrong], passed)
    status: Status = "partly" if any(earned.values()) else "wrong"
    message = f"{_message(task, wrong, mistake, earned)}{beside}"
    return _verdict(task, status, message, earned, mistake)


def _paying(task: Task) -> dict[str, float]:
    """The parts that are worth points. Messages don't mention parts that are worth none."""
    return {part: points for part, points in task.parts.items() if points}


def _verdict(
    task: Task,
    status: Status,
    message: str,
    earned: Mapping[str, float] | None = None,
    mistake: str | None = None,
) -> Verdict:
    """A verdict on the task; without `earned` it earns no points."""
    return Verdict(
        task=task.id,
        status=status,
        earned=dict.fromkeys(_paying(task), 0.0) if earned is None else earned,
        max_points=task.points,
        message=message,
        mistake=mistake,
    )


def judge_safely(task: Task, cases: Sequence[Case], answers: Sequence[Answer]) -> Verdict:
    """Return the verdict, or `could_not_judge` if the task's judge can't read an answer.

    Such a failure is the grader's fault: it earns nothing, doesn't count as a mistake, and goes to
    an instructor.
    """
    try:
        return judge(task, cases, answers)
    except Exception as error:
        kind = type(error).__name__
        return could_not_judge(
            task, f"The grader could not read this answer ({kind}). An instructor will look at it."
        )


def refuse(task: Task, uses: Sequence[Use], allows: Sequence[str] = ()) -> Verdict:
    """Return the verdict on a solution that uses banned names: no points, whatever its answers.

    `allows` are the names in modules that the lab allows.
    """
    names = _quotable(", ".join(use.name for use in uses))
    sentences = [f"Your solution uses {names}, so it earns no points."]
    if any(use.by_task for use in uses):
        sentences.append(task.ban.reason or "In this exercise you write that yourself.")
    if not all(use.by_task for use in uses):
        more = "".join(f", {names}" for names in _by_module({*allows, *task.ban.allows}))
        sentences.append(f"{_ALLOWED}{more}. {_REMEDY}")
    message = " ".join(sentences)
    return _verdict(task, "wrong", message)


def _by_module(names: set[str]) -> list[str]:
    """The names, with those of one module grouped: `torch.distributed (recv, send)`."""
    parts: dict[str, list[str]] = {}
    for name in sorted(names):
        module, _, last = name.rpartition(".")
        parts.setdefault(module, []).append(last)
    return [
        f"{module} ({', '.join(lasts)})" if len(lasts) > 2 else f"{module}.{last}".lstrip(".")
        for module, lasts in parts.items()
        for last in (lasts[:1] if len(lasts) > 2 else lasts)
    ]


def could_not_judge(task: Task, message: str, status: Status = "could_not_judge") -> Verdict:
    """Return the verdict on work that wasn't judged: no points, and no mistake."""
    return _verdict(task, status, message)


def judge_answer(task: Task, case: Case, answer: Answer) -> Mapping[str, Finding]:
    """Return the findings on one answer, for each part that its case decides."""
    found = _findings(task, case, answer)
    if answer.is_written:
        found = {part: CALLS_UNWRITTEN if f == NOT_WRITTEN else f for part, f in found.items()}
    if not answer.beside_solutions:
        return found
    # Code that ran beside solutions could leak them in its answer or in an exception.
    return {part: _without_values(finding, answer) for part, finding in found.items()}


def _without_values(finding: Finding, answer: Answer) -> Finding:
    if finding in (NOT_WRITTEN, CALLS_UNWRITTEN):
        return finding
    ours = answer.busy or finding.doubt in ("", answer.doubt)
    return replace(finding, said="", doubt=finding.doubt if ours else _DOUBT)


def _findings(task: Task, case: Case, answer: Answer) -> Mapping[str, Finding]:
    if answer.lost is not None:
        lost = Finding(False, doubt=answer.lost) if answer.busy else Finding(False, answer.lost)
        return dict.fromkeys(case.parts, lost)
    if answer.raised is not None:
        return dict.fromkeys(case.parts, _raised(*answer.raised))
    found = task.judge(case, answer)
    if missing := [part for part in case.parts if part not in found]:
        # A part without a failing finding is earned, so a missing finding must raise an error.
        raise ValueError(f"the judge of {task.id} has no finding for {', '.join(missing)}")
    if not answer.doubt:
        return found
    doubtful = Finding(False, doubt=answer.doubt)
    return {part: doubtful if finding.ok else finding for part, finding in found.items()}


def _raised(kind: str, message: str, trace: str) -> Finding:
    if kind == NotImplementedError.__name__:
        return NOT_WRITTEN
    if kind == NotDefined.__name__:
        return Finding(False, message)
    if kind == PlainError.__name__:
        return Finding(False, f"Your result can't be graded: {message}")
    if not trace and kind in _OF_MISUSE:  # none of the student's lines raised it
        without = " A function without `return` returns None." if "NoneType" in message else ""
        said = f"The grader couldn't use your code: {kind}: {message}. {_CHECK}{without}"
        return Finding(False, said)
    lines = f"\n{trace}" if trace else ""
    return Finding(False, f"Your code raised {kind}: {message}{lines}")


def _recognise(task: Task, failed: Sequence[Finding], passed: Sequence[Finding]) -> str | None:
    """The likeliest mistake that explains every failing answer.

    A mistake that also explains the answers that passed is preferred; one that they refute is out.
    """
    if all(finding.follows for finding in failed):
        return None
    refuted = {name for finding in passed for name in finding.refuted}
    explained = [n for n in task.mistakes if all(n in finding.mistakes for finding in failed)]
    fitting = [name for name in explained if name not in refuted]
    not_made = {name for finding in passed for name in finding.not_made}
    return next((n for n in fitting if n not in not_made), next(iter(fitting), None))


def _message(
    task: Task,
    failed: Sequence[tuple[Case, str, Finding]],
    mistake: str | None,
    earned: Mapping[str, float],
) -> str:
    sentences = []
    if mistake is not None:
        sentences.append(task.mistakes[mistake])
    shown = next((f.said for case, _, f in failed if not case.fixed and f.said), None)
    if shown is not None:
        sentences.append(_quotable(shown))
    elif mistake is None:
        about = next((case.about for case, _, _ in failed if case.about), _CORNERS)
        sentences.append(f"A hidden case failed: {about}")
    if any(earned.values()):
        missing = [part for part, points in earned.items() if not points]
        if missing:
            sentences.append(f"Not earned: {', '.join(missing)}.")
    return " ".join(sentences)


def _quotable(text: str) -> str:
    """Text that is safe to quote in a message, since a student's process chose some of it.

    Unpaired surrogates would break every table that they are written to.
    """
    plain = plain_text(text[:_MAX_QUOTED])
    return plain if len(text) <= _MAX_QUOTED else f"{plain}..."
