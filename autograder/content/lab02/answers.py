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
    divided by 2**30, and it is recognised in any order of operations.
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
    """Return a judge for a function that returns a dict: each part is decided by some of its keys.

    `reference` and `mutants` return the whole dict. `write(*arguments)` writes a call.
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
        for part in case.parts:
            outcomes = answer.value
            if isinstance(outcomes, list):
                outcomes = [_only(parts[part], keys, outcome) for outcome in outcomes]
            only = replace(case, parts=(part,))
            findings |= judges[part](only, replace(answer, value=outcomes))
        return findings

    return judge


def _of(count: _Count, keys: Sequence[str], *arguments: Any) -> dict[str, int]:
    counted = count(*arguments)
    return {key: counted[key] for key in keys}


def _only(own: Sequence[str], keys: set[str], outcome: Any) -> Any:
    """The outcome of a call as if it had returned only the keys of one part."""
    if not are_outcomes([outcome], 1) or outcome[0] != "value":
        return outcome
    counted = outcome[1]
    if isinstance(counted, dict) and counted.keys() == keys:
        return ("value", {key: counted[key] for key in own})
    named = f"exactly the keys {', '.join(sorted(keys))}"
    return ("raised", "KeyError", f"(a dict with {named} is expected, not {show(counted)})")
