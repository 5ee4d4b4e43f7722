"""Judges value tasks: an answer is right if it equals the reference's, call by call.

Each recognised mistake is a *mutant*: a function that makes exactly this mistake. An answer that
equals a mutant's is that mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.model.task import NOT_WRITTEN, Answer, Case, Finding

__all__ = ["by_reference", "same", "show", "whole"]

Outcome = tuple[Any, ...]

_EQUAL = {bool, int, str}  # of two of these, == says all; most answers are such


def same(expected: Any, got: Any) -> bool:
    """Tell whether two plain values are the same to a grader: by value, as == and self-checks do.

    Numbers are equal exactly, whatever their type: 2.0 counts as 2, and 1 as True. But where a
    float is expected, -0.0 differs from 0.0, and NaN equals NaN. Lists, tuples and arrays of the
    same values count alike; dicts have exactly the same keys.

    >>> same((1, 2.0), [1.0, 2]), same(True, 1), same(0.0, -0.0)
    (True, True, False)
    """
    if type(expected) is type(got) and type(expected) in _EQUAL:
        return bool(expected == got)
    if isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        return _same_arrays(expected, got)
    expected, got = _unwrap(expected), _unwrap(got)
    if isinstance(expected, float):
        return isinstance(got, (int, float)) and _same_floats(expected, got)
    if isinstance(expected, int):
        return isinstance(got, (int, float)) and expected == got
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and expected.keys() == got.keys()
            and all(same(expected[key], got[key]) for key in expected)
        )
    if isinstance(expected, list):
        return isinstance(got, list) and len(expected) == len(got) and all(map(same, expected, got))
    return type(expected) is type(got) and expected == got


def whole(equal: Callable[[Any, Any], bool] = same) -> Callable[[Any, Any], bool]:
    """Return `equal` for an exercise that asks for whole numbers: no float counts as one.

    Its self-check has to refuse floats as well.
    """
    return lambda expected, got: equal(expected, got) and not _has_float_for_int(expected, got)


def _has_float_for_int(expected: Any, got: Any) -> bool:
    """Look through two values that are the same otherwise."""
    expected, got = _unwrap(expected), _unwrap(got)
    if isinstance(expected, dict):
        return any(_has_float_for_int(expected[key], got[key]) for key in expected)
    if isinstance(expected, list):
        return any(map(_has_float_for_int, expected, got))
    return isinstance(got, float) and not isinstance(expected, float)


def _unwrap(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return list(value)
    return set(value) if isinstance(value, frozenset) else value


def _same_floats(expected: float, got: float) -> bool:
    if math.isnan(expected):
        return got != got  # math.isnan refuses what is too large for a float
    if expected == 0 == got:
        return math.copysign(1, expected) == math.copysign(1, got)
    return expected == got


def _same_arrays(expected: np.ndarray, got: np.ndarray) -> bool:
    if expected.shape != got.shape:
        return False
    if expected.dtype.kind in "iu" and got.dtype.kind in "iu":
        return bool((expected == got).all())
    return same(expected.tolist(), got.tolist())


def by_reference(
    reference: Callable[..., Any],
    mutants: Mapping[str, Callable[..., Any]] | None = None,
    *,
    equal: Callable[[Any, Any], bool] = same,
    write: Callable[..., str] | None = None,
    form: Callable[[Any], str] | None = None,
) -> Callable[[Case, Answer], Mapping[str, Finding]]:
    """Return a judge for a probe that answers `call_each(function, calls)`.

    The case's inputs hold `calls`, one list of arguments a call. The reference and the mutants
    take the same arguments; where the reference raises, the student's function has to raise the
    same type of exception. `equal(expected, got)` compares two values. `write(*arguments)` writes
    a call as a student would, `form(value)` a result; without them, they are shown as they are.
    """

    def judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
        return dict.fromkeys(case.parts, compared(case.inputs["calls"], answer.value))

    def compared(calls: Sequence[Sequence[Any]], outcomes: Any) -> Finding:
        if not _are_outcomes(outcomes, len(calls)):
            return Finding(False, "The answers came back garbled.")
        for arguments, got in zip(calls, outcomes, strict=True):
            expected = _outcome(reference, arguments)
            if _agrees(expected, got, equal):
                continue
            if tuple(got[:2]) == ("raised", "NotImplementedError"):
                return NOT_WRITTEN
            said = _say(arguments, expected, got, write, form or show)
            return Finding(False, said, tuple(explanations(calls, outcomes)))
        return Finding(True)

    def explanations(calls: Sequence[Sequence[Any]], outcomes: Any) -> Iterator[str]:
        for name, mutant in (mutants or {}).items():
            expected = (_outcome(mutant, arguments) for arguments in calls)
            if all(_agrees(e, got, equal) for e, got in zip(expected, outcomes, strict=True)):
                yield name

    return judge


def _are_outcomes(outcomes: Any, count: int) -> bool:
    return (
        isinstance(outcomes, (list, tuple))
        and len(outcomes) == count
        and all(isinstance(o, (list, tuple)) and len(o) >= 2 for o in outcomes)
    )


def _outcome(function: Callable[..., Any], arguments: Sequence[Any]) -> Outcome:
    try:
        return ("value", function(*arguments))
    except Exception as error:
        return ("raised", type(error).__name__, str(error))


def _agrees(expected: Outcome, got: Sequence[Any], equal: Callable[[Any, Any], bool]) -> bool:
    if expected[0] != got[0]:
        return False
    return equal(expected[1], got[1])


def _say(
    arguments: Sequence[Any],
    expected: Outcome,
    got: Sequence[Any],
    write: Callable[..., str] | None,
    form: Callable[[Any], str],
) -> str:
    call = write(*arguments) if write else ", ".join(show(a) for a in arguments)
    return f"For {call}: expected {_word(expected, form)}, but {_came(got, form)}."


def _word(expected: Outcome, form: Callable[[Any], str]) -> str:
    return form(expected[1]) if expected[0] == "value" else f"a {expected[1]}"


def _came(got: Sequence[Any], form: Callable[[Any], str]) -> str:
    if got[0] == "value":
        return f"got {form(got[1])}"
    if got[0] == "changed":
        return f"your function changed its argument number {got[1] + 1} in place"
    return f"your function raised {got[1]}: {got[2] if len(got) > 2 else ''}".rstrip(": ")


def show(value: Any, limit: int = 120) -> str:
    """Return a value as a student would write it, cut to `limit` characters."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python refuses to write integers of over 4300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= limit else text[: limit - 3] + "..."
