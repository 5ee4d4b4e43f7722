"""format_limits: what a format of e exponent bits and m mantissa bits can hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.content.lab01.rounding import largest
from autograder.model.compare import are_outcomes, by_reference, show
from autograder.model.task import Answer, Case, Finding, Task

__all__ = ["format_limits"]

_Limit = Callable[[int, int], float]


def _power(exponent: int) -> float:
    """2.0**exponent, or inf if that is too large for a float."""
    return math.ldexp(1.0, exponent) if exponent < 1024 else math.inf


def _bias(e: int) -> int:
    return (1 << e - 1) - 1


_LIMITS: dict[str, _Limit] = {
    "max": lambda e, m: float(largest(e, m)),
    "min_normal": lambda e, m: _power(1 - _bias(e)),
    "min_subnormal": lambda e, m: _power(1 - _bias(e) - m),
    "epsilon": lambda e, m: _power(-m),
}

# The limits that each mistake gets wrong; the others are right.
_MUTANTS: dict[str, dict[str, _Limit]] = {
    "max_takes_top_exponent": {"max": lambda e, m: (2 - _power(-m)) * _power(_bias(e) + 1)},
    "max_without_fraction": {"max": lambda e, m: _power(_bias(e))},
    "max_is_next_power": {"max": lambda e, m: _power(_bias(e) + 1)},
    "normal_from_exponent_0": {
        "min_normal": lambda e, m: _power(-_bias(e)),
        "min_subnormal": lambda e, m: _power(-_bias(e) - m),
    },
    "subnormal_from_exponent_0": {"min_subnormal": lambda e, m: _power(-_bias(e) - m)},
    "subnormal_is_normal": {"min_subnormal": lambda e, m: _power(1 - _bias(e))},
    "half_epsilon": {"epsilon": lambda e, m: _power(-m - 1)},
    "double_epsilon": {"epsilon": lambda e, m: _power(1 - m)},
    "bias_is_power": {
        "max": lambda e, m: (2 - _power(-m)) * _power(2**e - 2 - 2 ** (e - 1)),
        "min_normal": lambda e, m: _power(1 - 2 ** (e - 1)),
        "min_subnormal": lambda e, m: _power(1 - 2 ** (e - 1) - m),
    },
}


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(formats: list[list[int]], *, fixed: bool = False) -> Case:
        return Case(tuple(_LIMITS), {"calls": formats}, fixed=fixed)

    drawn = [[int(rng.integers(2, 12)), int(rng.integers(1, 53))] for _ in range(40)]
    corners = [[2, 1], [2, 52], [11, 1], [11, 52], [4, 3], [3, 2], [8, 10]]
    return [case([[5, 10], [8, 7], [8, 23], [5, 2]]), case(drawn), case(corners, fixed=True)]


def _judge_of(key: str) -> Callable[[Case, Answer], Mapping[str, Finding]]:
    mutants = {name: limits.get(key, _LIMITS[key]) for name, limits in _MUTANTS.items()}
    return by_reference(
        _LIMITS[key], mutants, write=lambda e, m: f"format_limits({e}, {m})[{key!r}]"
    )


_JUDGES = {key: _judge_of(key) for key in _LIMITS}


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    findings: dict[str, Finding] = {}
    for key, judge in _JUDGES.items():
        outcomes = answer.value
        if isinstance(outcomes, list):
            outcomes = [_only(key, outcome) for outcome in outcomes]
        only = Case((key,), case.inputs, fixed=case.fixed)
        findings |= judge(only, replace(answer, value=outcomes))
    return findings


def _only(key: str, outcome: Any) -> Any:
    """The outcome of a call as if it had asked for this limit only."""
    if not are_outcomes([outcome], 1) or outcome[0] != "value":
        return outcome
    limits = outcome[1]
    if isinstance(limits, dict) and limits.keys() == _LIMITS.keys():
        return ("value", limits[key])
    keys = f"exactly the keys {', '.join(_LIMITS)}"
    return ("raised", "KeyError", f"(a dict with {keys} is expected, not {show(limits)})")


format_limits = Task(
    id="lab01-format_limits",
    parts=dict.fromkeys(_LIMITS, 0.5),
    defines=("format_limits",),
    probe="format_limits",
    cases=_cases,
    judge=_judge,
    mistakes={
        "max_takes_top_exponent": "The highest exponent field, all ones, is reserved for infinity "
        "and NaN. The largest number has the exponent field below it.",
        "max_without_fraction": "The largest number has a fraction of all ones, so it is nearly "
        "twice its power of two: (2 - 2**-m) * 2**bias.",
        "max_is_next_power": "Your max is one gap too high: a fraction of all ones is 1 - 2**-m, "
        "not 1.",
        "half_epsilon": "Here epsilon is the gap above 1, 2**-m. Half of it is the largest "
        "rounding error, which some books also call epsilon.",
        "double_epsilon": "The gap above 1 is 2**-m: m bits are stored besides the leading 1.",
        "subnormal_is_normal": "The smallest subnormal number's fraction has a 1 in its last "
        "place: it is 2**-m times the smallest normal number.",
        "subnormal_from_exponent_0": "Subnormal numbers share the power of two of exponent field "
        "1: their smallest is 2**(1 - bias - m).",
        "normal_from_exponent_0": "The smallest normal number has exponent field 1, because 0 "
        "marks subnormal numbers: it is 2**(1 - bias).",
        "bias_is_power": "The bias is 2**(e - 1) - 1: 127 for 8 exponent bits, 15 for 5.",
    },
)
