"""How lab 2's answers are compared: bytes exactly, mistakes in units too, dicts part by part."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from autograder.model.compare import are_outcomes, by_reference, show, whole
from autograder.model.task import Answer, Case, Finding

__all__ = ["by_parts", "exact_bytes"]

_Count = Callable[..., Mapping[str, int]]


def exact_bytes(expected: Any, got: Any) -> bool:
    """Tell whether two answers are equal.

    All references of this lab are whole numbers. Only a mutant's value is a float, such as bytes
    divided by 2**30; rounding may differ there, because the order of operations may.
    """
    if isinstance(expected, float) and isinstance(got, float):
        return math.isclose(expected, got, rel_tol=1e-9)
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(
            exact_bytes(expected[key], got[key]) for key in expected
        )
    return not isinstance(expected, float) and whole()(expected, got)


def by_parts(
    reference: _Count,
    parts: Mapping[str, Sequence[str]],
    mutants: Mapping[str, _Count],
    write: Callable[..., str],
) -> Callable[[Case, Answer], Mapping[str, Finding]]:
    """Return a judge for a function that returns a dict: some of its keys decide each part.

    `reference` and `mutants` return the whole dict. `write(*arguments)` formats a call.
    """
    keys = {key for part in parts.values() for key in part}

    judges = {
        part: by_reference(
            partial(_of, reference, own),
            {name: partial(_of, mutant, own) for name, mutant in mutants.items()},
            equal=exact_bytes,
            write=write,
        )
        for part, own in parts.items()
    }

    def judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
        findings: dict[str, Finding] = {}
        if said := _said_of_keys(reference, keys, write, case.inputs["calls"], answer.value):
            return dict.fromkeys(case.parts, Finding(False, said))
        for part in case.parts:
            outcomes = answer.value
            if isinstance(outcomes, list):
                outcomes = [_only(parts[part], keys, outcome) for outcome in outcomes]
            only = replace(case, parts=(part,))
            findings |= judges[part](only, replace(answer, value=outcomes))
        return findings

    return judge


def _said_of_keys(
    reference: _Count,
    keys: set[str],
    write: Callable[..., str],
    calls: Sequence[Sequence[Any]],
    outcomes: Any,
) -> str:
    """Describe the first value that isn't a dict with these keys; "" if all are."""
    if not are_outcomes(outcomes, len(calls)):
        return ""
    for call, outcome in zip(calls, outcomes, strict=True):
        if outcome[0] == "value" and not _is_count(outcome[1], keys) and _is_valid(reference, call):
            named = ", ".join(sorted(keys))
            expected = f"expected a dict with exactly the keys {named}"
            return f"For {write(*call)}: {expected}, but got {show(outcome[1])}."
    return ""


def _is_valid(reference: _Count, call: Sequence[Any]) -> bool:
    """Whether the reference returns a count for these arguments, and raises no error."""
    try:
        reference(*call)
    except ValueError:
        return False
    return True


def _of(count: _Count, keys: Sequence[str], *arguments: Any) -> dict[str, int]:
    counted = count(*arguments)
    return {key: counted[key] for key in keys}


def _only(own: Sequence[str], keys: set[str], outcome: Any) -> Any:
    """The outcome of a call as if it had returned only one part's keys."""
    if not are_outcomes([outcome], 1) or outcome[0] != "value":
        return outcome
    counted = outcome[1]
    return ("value", {key: counted[key] for key in own}) if _is_count(counted, keys) else outcome


def _is_count(counted: Any, keys: set[str]) -> bool:
    return isinstance(counted, dict) and counted.keys() == keys
