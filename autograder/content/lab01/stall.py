"""stall_value: where a running sum stops growing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from autograder.content.lab01.rounding import floor_log2, gap, largest, power_of_two, rounded
from autograder.content.one_at_a_time import one_at_a_time
from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["stall_value", "stalls_at"]

_KNOWN = ((5, 10), (8, 7), (5, 2), (4, 3))


def _some_format(rng: np.random.Generator) -> tuple[int, int]:
    return int(rng.integers(3, 9)), int(rng.integers(2, 11))


def stalls_at(step: float, e: int, m: int) -> float:
    """Return where the sum stalls, by adding and rounding as the exercise says.

    A run of equal additions is done in one step. Between two powers of two the gap is constant, and
    so is the rounded addition once the first tie has made the last bit even. Everything is computed
    in integers, in a unit small enough for every number involved.
    """
    exact = Fraction(step)
    least = 2 - (1 << e - 1) - m  # the smallest gap is 2**least
    scale = max(exact.denominator.bit_length() - 1, -least)
    added = int(exact * 2**scale)
    too_large = 1 << (1 << e - 1) + scale

    def nearest(x: int) -> int:
        shift = max(x.bit_length() - 1 - m, least + scale)
        whole, rest = x >> shift, x & (1 << shift) - 1
        up = 2 * rest > 1 << shift or (2 * rest == 1 << shift and whole & 1)
        return whole + int(up) << shift

    s = nearest(added)
    while s < too_large:
        t = nearest(s + added)
        if t == s:
            return s / (1 << scale)
        top = 1 << max(s.bit_length(), least + scale + m)  # where the gap doubles
        u = nearest(t + added)
        if u < top and u - t == t - s:
            t += max((top - added - t) // (t - s), 0) * (t - s)
        s = t
    return math.inf


def _cases(rng: np.random.Generator) -> list[Case]:
    def step(e: int, m: int) -> float:
        lowest, highest = 1 - 2 ** (e - 1), 2 ** (e - 1) - 2
        return float(2.0 ** rng.uniform(lowest - m, highest - m))

    def edges(e: int, m: int) -> list[list[float]]:
        """Steps around half the smallest number, around a power of two, and around overflow."""
        half = float(gap(Fraction(0), e, m)) / 2
        power = 2.0 ** int(rng.integers(-3, 2))
        last = float(largest(e, m)) / 2 ** (m + 1)
        over = math.ldexp(1.0, round(math.log2(last)))
        near = [half, power, over / 2, over]  # half of it is the last step that doesn't overflow
        steps = [s for x in near for s in (x, math.nextafter(x, 0), math.nextafter(x, math.inf))]
        steps += [half / 4, 1.9 * half, 3 * half, last * 64, float(largest(e, m)) * 4]
        return [[s, e, m] for s in steps]

    def case(calls: list[list[float]], *, fixed: bool = False) -> Case:
        return Case(("value",), {"calls": calls}, fixed=fixed)

    some = _some_format(rng)
    far = [2.0 ** float(rng.uniform(130, 200)), int(rng.integers(9, 11)), int(rng.integers(13, 23))]
    return [
        case([*([step(e, m), e, m] for e, m in (*_KNOWN, some, _some_format(rng))), far]),
        case(edges(*some)),
        case([[step(8, 23), 8, 23], [float(rng.uniform(0.001, 0.1)), 8, 23], [0.01, 8, 23]]),
        case([[0.01, 5, 10], [0.01, 8, 7], [1.0, 5, 10], *edges(5, 10)], fixed=True),
        case(one_at_a_time([17.0, 5, 10], {0: 16.0, 1: 8, 2: 7}), fixed=True),
    ]


def _by_formula(
    step: float, e: int, m: int, *, gaps: int = 2, strictly: bool = False, bounded: bool = True
) -> float:
    """The first power of two at (or strictly above) which the gap is `gaps` steps wide."""
    wide = Fraction(step) * gaps * 2**m
    power = power_of_two(floor_log2(wide))
    if power < wide or (power == wide and strictly):
        power *= 2
    if bounded and rounded(Fraction(step), e, m) == 0:
        return 0.0
    return math.inf if bounded and power > largest(e, m) else float(power)


def _step_below_gap(step: float, e: int, m: int) -> float:
    if step < gap(Fraction(0), e, m):
        return 0.0
    return _by_formula(step, e, m, gaps=1, strictly=True)


def _whole_gap_underflow(step: float, e: int, m: int) -> float:
    return 0.0 if step < gap(Fraction(0), e, m) else stalls_at(step, e, m)


def _subnormals_flushed(step: float, e: int, m: int) -> float:
    return 0.0 if step < gap(Fraction(0), e, m) * 2**m else stalls_at(step, e, m)


def _no_underflow(step: float, e: int, m: int) -> float:
    stall = stalls_at(step, e, m)
    return _by_formula(step, e, m, bounded=False) if stall == 0 else stall


def _no_overflow(step: float, e: int, m: int) -> float:
    stall = stalls_at(step, e, m)
    return _by_formula(step, e, m, bounded=False) if math.isinf(stall) else stall


def _stays_at_max(step: float, e: int, m: int) -> float:
    return min(stalls_at(step, e, m), float(largest(e, m)))


def _step_rounded(step: float, e: int, m: int) -> float:
    first = float(rounded(Fraction(step), e, m))
    return first if first == 0 or math.isinf(first) else stalls_at(first, e, m)


stall_value = Task(
    id="lab01-stall_value",
    stretch=True,
    parts={"value": 3},
    defines=("stall_value",),
    probe="stall_value",
    cases=_cases,
    judge=by_reference(
        stalls_at,
        {
            "step_rounded": _step_rounded,
            "ties_move_on": lambda step, e, m: _by_formula(step, e, m, strictly=True),
            "whole_gap": lambda step, e, m: _by_formula(step, e, m, gaps=1, strictly=True),
            "step_below_gap": _step_below_gap,
            "whole_gap_underflow": _whole_gap_underflow,
            "subnormals_flushed": _subnormals_flushed,
            "no_underflow": _no_underflow,
            "no_overflow": _no_overflow,
            "stays_at_max": _stays_at_max,
            "formula_without_limits": lambda step, e, m: _by_formula(step, e, m, bounded=False),
            "not_a_power_of_two": lambda step, e, m: step * 2 ** (m + 1),
        },
        write=lambda step, e, m: f"stall_value({step!r}, {e}, {m})",
    ),
    mistakes={
        "step_rounded": "The step stays exact; only sums are rounded. You round the step to the "
        "format first.",
        "ties_move_on": "A step of exactly half a gap is a tie. A power of two is even, so the "
        "tie rounds back to it, and the sum stalls there.",
        "whole_gap": "Your sum stalls where the gap exceeds the step. It must exceed twice the "
        "step, because more than half a gap still rounds up.",
        "step_below_gap": "`step < gap` is not the rule: a step of more than half a gap still "
        "rounds up, at 0 and at every power of two. Compare the step with half the gap.",
        "whole_gap_underflow": "The first addition is lost only if the step is at most half the "
        "smallest number; a larger step rounds up to that number.",
        "subnormals_flushed": "Below the smallest normal number there are subnormal numbers, so a "
        "small step isn't lost there yet.",
        "no_underflow": "A step of at most half the smallest number is lost at once: the sum stays "
        "at 0.0.",
        "no_overflow": "Where the sum would stall above the largest number, it overflows: inf.",
        "stays_at_max": "The largest number plus a step of half a gap or more is inf.",
        "formula_without_limits": "Your formula ignores both the smallest number (a step of at "
        "most half of it gives 0.0) and the largest (a sum beyond it is inf).",
        "not_a_power_of_two": "The gap doubles only at powers of two, so the sum continues to the "
        "next one.",
    },
)
