"""Judges value tasks: an answer is correct if it equals the reference's, call by call.

Each recognised mistake has a *mutant*, a function that makes exactly this mistake. An answer equal
to the mutant's is attributed to that mistake, unless another mistake explains more of the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.model.task import NOT_WRITTEN, Answer, Case, Finding
from peakmem.core.serialization import PlainError
from peakmem.labs.compare import same, show, whole

__all__ = [
    "are_outcomes",
    "by_reference",
    "first_entry",
    "first_item",
    "raised_text",
    "same",
    "show",
    "whole",
]

Outcome = tuple[Any, ...]


def by_reference(
    reference: Callable[..., Any],
    mutants: Mapping[str, Callable[..., Any]] | None = None,
    *,
    equal: Callable[[Any, Any], bool] = same,
    write: Callable[..., str] | None = None,
    form: Callable[[Any], str] | None = None,
    item: str = "",
) -> Callable[[Case, Answer], Mapping[str, Finding]]:
    """Return a judge for a probe that answers `call_each(function, calls)`.

    The case's inputs hold `calls`, one list of arguments for each call. The reference and the
    mutants take the same arguments. If the reference raises an exception, the student's function
    has to raise the same type. `equal(expected, got)` compares two values, `write(*arguments)`
    formats a call as a student would write it, and `form(value)` formats a result; by default
    both are formatted by `show`. If results are lists, `item` says what an item stands for, such as
    "step", and the message names the first one that differs instead of showing both lists. For two
    dicts, the message shows a missing or unexpected key, or else the first entry that differs; for
    two arrays of the same shape, the place where they differ most.
    """

    def judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
        return dict.fromkeys(case.parts, compared(case.inputs["calls"], answer.value))

    def compared(calls: Sequence[Sequence[Any]], outcomes: Any) -> Finding:
        if not are_outcomes(outcomes, len(calls)):
            return Finding(False, "The answers came back garbled.")
        for arguments, got in zip(calls, outcomes, strict=True):
            expected = _outcome(reference, arguments)
            if _agrees(expected, got, equal):
                continue
            if tuple(got[:2]) == ("raised", "NotImplementedError"):
                return NOT_WRITTEN
            call = write(*arguments) if write else ", ".join(show(a) for a in arguments)
            said = (
                (item and first_item(item, expected, got, equal, form or show))
                or first_entry(expected, got, equal)
                or _difference(expected, got, form or show)
            )
            said = f"For {call}: {said}"
            return Finding(False, said, mistakes=tuple(explanations(calls, outcomes)))
        fitting = set(explanations(calls, outcomes))
        return Finding(True, not_made=tuple(name for name in mutants or {} if name not in fitting))

    def explanations(calls: Sequence[Sequence[Any]], outcomes: Any) -> Iterator[str]:
        for name, mutant in (mutants or {}).items():
            expected = (_outcome(mutant, arguments) for arguments in calls)
            if all(_agrees(e, got, equal) for e, got in zip(expected, outcomes, strict=True)):
                yield name

    return judge


def are_outcomes(outcomes: Any, count: int) -> bool:
    """Tell whether the value has the form of a probe's answer to `count` calls."""
    return (
        isinstance(outcomes, (list, tuple))
        and len(outcomes) == count
        and all(map(_is_one, outcomes))
    )


def _is_one(outcome: Any) -> bool:
    return (
        isinstance(outcome, (list, tuple))
        and len(outcome) >= 2
        and isinstance(outcome[0], str)
        and (outcome[0] != "raised" or isinstance(outcome[1], str))
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


def first_item(
    item: str,
    expected: Outcome,
    got: Sequence[Any],
    equal: Callable[[Any, Any], bool],
    form: Callable[[Any], str],
) -> str:
    """Where two lists of the same length first differ, and how; "" if they aren't such lists."""
    if expected[0] != "value" or got[0] != "value":
        return ""
    right, found = expected[1], got[1].tolist() if isinstance(got[1], np.ndarray) else got[1]
    if not isinstance(found, (list, tuple)) or len(right) != len(found):
        return ""
    for place, (one, other) in enumerate(zip(right, found, strict=True)):
        if not equal(one, other):
            said = f"your list first differs at {item} {place}."
            return f"{said} Expected {form(one)}, but got {form(other)}."
    return ""


def first_entry(expected: Outcome, got: Sequence[Any], equal: Callable[[Any, Any], bool]) -> str:
    """Which entry of two dicts first differs, or which key; "" if they aren't dicts.

    `equal` compares whole dicts, so each entry is tried in a copy of the expected dict.
    """
    if expected[0] != "value" or got[0] != "value":
        return ""
    right, found = expected[1], got[1]
    if not (isinstance(right, dict) and isinstance(found, dict)):
        return ""
    if missing := [key for key in right if key not in found]:
        return f"your dict has no key {show(missing[0])}."
    if further := [key for key in found if key not in right]:
        return f"your dict has the key {show(further[0])}, which isn't asked for."
    for key, value in right.items():
        if not equal(right, {**right, key: found[key]}):
            place, one, other = _place(value, found[key])
            return f"`{key}` differs{place}. Expected {show(one)}, but got {show(other)}."
    return ""


def _difference(expected: Outcome, got: Sequence[Any], form: Callable[[Any], str]) -> str:
    if got[0] == "changed" or (got[0] == "raised" and isinstance(expected[1], (dict, np.ndarray))):
        return f"{_got_text(got, form)}."  # the expected value is long, and wouldn't help
    if expected[0] == got[0] == "value" and isinstance(expected[1], np.ndarray):
        place, one, other = _place(expected[1], got[1])
        return f"your result differs{place}. Expected {form(one)}, but got {form(other)}."
    return f"expected {_expected_text(expected, form)}, but {_got_text(got, form)}."


def _place(expected: Any, got: Any) -> tuple[str, Any, Any]:
    """Return where two arrays differ most, and their values there; other values unchanged.

    If their shapes or types differ, returns these instead.
    """
    if not (isinstance(expected, np.ndarray) and isinstance(got, np.ndarray)):
        return "", expected, got
    if expected.shape != got.shape:
        return " in shape", expected.shape, got.shape
    if not {expected.dtype.kind, got.dtype.kind} <= set("biuf"):
        return "", expected, got
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.nan_to_num(np.abs(got.astype(float) - expected.astype(float)), nan=np.inf)
    if not gaps.any():
        return " in type", str(expected.dtype), str(got.dtype)
    place = tuple(map(int, np.unravel_index(gaps.argmax(), gaps.shape)))
    return f" most at {list(place)}", _short(expected[place]), _short(got[place])


def _short(value: Any) -> Any:
    """Return a number of an array as Python's, a float with seven digits."""
    number = value.item()
    return float(f"{number:.7g}") if isinstance(number, float) else number


def _expected_text(expected: Outcome, form: Callable[[Any], str]) -> str:
    return form(expected[1]) if expected[0] == "value" else f"a {expected[1]}"


def _got_text(got: Sequence[Any], form: Callable[[Any], str]) -> str:
    if got[0] == "value":
        return f"got {form(got[1])}"
    if got[0] == "changed":
        return f"your function changed its argument number {got[1] + 1} in place"
    return raised_text(got)


def raised_text(outcome: Sequence[Any]) -> str:
    """Say what a call raised, or that it returned something that isn't plain data."""
    kind, message = outcome[1], outcome[2] if len(outcome) > 2 else ""
    if kind == PlainError.__name__:
        return f"your result can't be graded: {message}"
    return f"your function raised {kind}: {message}".rstrip(": ")
