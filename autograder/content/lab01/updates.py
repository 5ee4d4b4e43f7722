"""update_lost: does adding an update change a parameter at all?"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from autograder.content.lab01.rounding import floor_log2, gap, largest, power_of_two, rounded
from autograder.content.one_at_a_time import one_at_a_time
from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["is_lost", "update_lost"]


def _some_format(rng: np.random.Generator) -> tuple[int, int]:
    return int(rng.integers(3, 9)), int(rng.integers(2, 11))


def is_lost(param: float, update: float, e: int, m: int) -> bool:
    """Tell by exact rounding whether an update changes nothing."""
    p, u = rounded(Fraction(param), e, m), rounded(Fraction(update), e, m)
    if isinstance(p, float) or isinstance(u, float):
        return float(p) + float(u) == p
    return rounded(p + u, e, m) == p


def _cases(rng: np.random.Generator) -> list[Case]:
    def around(param: float, e: int, m: int) -> list[list[float]]:
        """Updates around a quarter and half of the gap, up and down."""
        near = float(gap(Fraction(param), e, m))
        sizes = [near / 2 * f for f in (0.5, 0.75, 1 - 2.0**-m, 1, 1 + 2.0**-m, 1.5)]
        return [[param, sign * size, e, m] for size in sizes for sign in (1.0, -1.0)]

    def sign() -> float:
        return float(rng.choice([-1.0, 1.0]))

    def number(e: int, m: int) -> float:
        return sign() * float(2.0 ** rng.uniform(1.0, 2.0 ** (e - 1) - 2))

    def subnormal(e: int, m: int) -> float:
        return sign() * float(int(rng.integers(1, 2**m)) * gap(Fraction(0), e, m))

    def in_format(x: float, e: int, m: int) -> float:
        return float(rounded(Fraction(x), e, m))

    some = _some_format(rng)
    wide = (int(rng.integers(9, 11)), int(rng.integers(13, 23)))
    far = sign() * 2.0 ** float(rng.uniform(130, 250))  # beyond float32's range
    calls: list[list[float]] = around(in_format(far, *wide), *wide)
    for e, m in ((5, 10), (8, 7), some):
        calls += around(in_format(number(e, m), e, m), e, m)
    calls += around(number(*some), *some)  # not in the format
    calls += around(sign() * 2.0 ** float(rng.integers(-1, 2)), *some)
    calls += around(subnormal(*some), *some) + around(subnormal(5, 10), 5, 10)
    calls += [[number(*some), 0.0, *some]]
    calls += [[0.0, share * float(gap(Fraction(0), *some)), *some] for share in (0.25, -0.75)]
    calls = [calls[i] for i in rng.permutation(len(calls))]
    top = float(largest(5, 10))
    fixed = [*around(1.0, 5, 10), *around(-1.0, 8, 7), *around(top, 5, 10), [0.0, 2.0**-24, 5, 10]]
    fixed += [[0.0, 2.0**-25, 5, 10], [0.0, 0.0, 5, 10], [1e6, 1.0, 5, 10], [1.0, 1e6, 5, 10]]
    fixed += [[1.0, 0.001, 8, 7], [1.0, 0.005, 8, 7], [2.0**-24, 2.0**-25, 5, 10]]
    fixed += [*around(-1.0, 8, 23), *around(1.0, 2, 1), *around(1.5, 2, 3)]
    # An infinite parameter never changes.
    fixed += [[1e6, 1e4, 5, 10], [-1e6, 1e4, 5, 10], [1e6, 1e6, 5, 10]]
    fixed += [[0.1, 0.0, 5, 10]]
    fixed += one_at_a_time([1e6, 1e4, 5, 10], {2: 8}) + one_at_a_time([1.0, 2.0**-9, 8, 7], {3: 10})
    return [
        Case(("value",), {"calls": calls}),
        Case(("value",), {"calls": fixed}, fixed=True),
    ]


def _inputs_not_rounded(param: float, update: float, e: int, m: int) -> bool:
    total = rounded(Fraction(param) + Fraction(update), e, m)
    return total == rounded(Fraction(param), e, m)


def _compared_with_unrounded(param: float, update: float, e: int, m: int) -> bool:
    p, u = rounded(Fraction(param), e, m), rounded(Fraction(update), e, m)
    if isinstance(p, float) or isinstance(u, float):
        return float(p) + float(u) == param
    return rounded(p + u, e, m) == Fraction(param)


def _infinity_moves(param: float, update: float, e: int, m: int) -> bool:
    return is_lost(param, update, e, m) and not isinstance(rounded(Fraction(param), e, m), float)


def _no_overflow(param: float, update: float, e: int, m: int) -> bool:
    def nearest(x: Fraction) -> Fraction:
        step = gap(x, e, m)
        return round(x / step) * step

    p = nearest(Fraction(param))
    return nearest(p + nearest(Fraction(update))) == p


def _unbounded_below(x: Fraction, e: int, m: int) -> Fraction | float:
    """The nearest number if exponents, and so the gaps, had no lower bound."""
    if x == 0:
        return x
    step = power_of_two(floor_log2(abs(x)) - m)
    nearest = round(x / step) * step
    return nearest if abs(nearest) <= largest(e, m) else rounded(x, e, m)


def _flushed(x: Fraction, e: int, m: int) -> Fraction | float:
    """The nearest number among zero and the normal numbers."""
    nearest = rounded(x, e, m)
    normal = isinstance(nearest, float) or abs(nearest) >= power_of_two(2 - (1 << e - 1))
    return nearest if normal else Fraction(0)


def _rounding_by(
    nearest: Callable[[Fraction, int, int], Fraction | float],
) -> Callable[[float, float, int, int], bool]:
    def mutant(param: float, update: float, e: int, m: int) -> bool:
        p, u = nearest(Fraction(param), e, m), nearest(Fraction(update), e, m)
        if isinstance(p, float) or isinstance(u, float):
            return is_lost(param, update, e, m)
        return nearest(p + u, e, m) == p

    return mutant


def _up_to(share: float, *, signed: bool = False) -> Callable[[float, float, int, int], bool]:
    """Lost whenever the update is at most this share of the gap above the parameter."""

    def mutant(param: float, update: float, e: int, m: int) -> bool:
        p, u = rounded(Fraction(param), e, m), rounded(Fraction(update), e, m)
        if isinstance(p, float) or isinstance(u, float):
            return is_lost(param, update, e, m)
        return (u if signed else abs(u)) <= share * gap(p, e, m)

    return mutant


def _less_than_epsilon(param: float, update: float, e: int, m: int) -> bool:
    return abs(update) < abs(param) * 2.0**-m


update_lost = Task(
    id="lab01-update_lost",
    parts={"value": 1},
    defines=("update_lost",),
    probe="update_lost",
    cases=_cases,
    judge=by_reference(
        is_lost,
        {
            "inputs_not_rounded": _inputs_not_rounded,
            "infinity_moves": _infinity_moves,
            "compared_with_unrounded": _compared_with_unrounded,
            "half_gap_only": _up_to(0.5),
            "whole_gap": _up_to(1.0),
            "negative_always_lost": _up_to(0.5, signed=True),
            "less_than_epsilon": _less_than_epsilon,
            "no_overflow": _no_overflow,
            "no_subnormals": _rounding_by(_unbounded_below),
            "subnormals_flushed": _rounding_by(_flushed),
            "in_binary64": lambda param, update, e, m: param + update == param,
        },
        write=lambda param, update, e, m: f"update_lost({param!r}, {update!r}, {e}, {m})",
    ),
    mistakes={
        "inputs_not_rounded": "param and update are stored in the format, so round both to it "
        "before you add them.",
        "infinity_moves": "An infinite param that stays infinite hasn't moved. Compare with ==, "
        "because inf - inf is NaN, not 0.",
        "compared_with_unrounded": "Compare with the rounded param. The param you were given may "
        "not be in the format, and then no result equals it.",
        "half_gap_only": "Half a gap is not the whole rule: a tie moves away from an odd number, "
        "and just below a power of two the gap is half as wide.",
        "whole_gap": "You treat every update of up to a whole gap as lost; more than half a gap "
        "rounds to the neighbour.",
        "negative_always_lost": "A negative update counts by its absolute value.",
        "less_than_epsilon": "epsilon * param is only about one gap: it varies between powers of "
        "two, and the gap doesn't. Round the sum to the format instead.",
        "no_overflow": "Values above the format's largest number are infinity, and infinity plus "
        "anything finite is infinity; your function continues with finite numbers there.",
        "no_subnormals": "Below the smallest normal number the gap stays the same; you keep "
        "halving it at every power of two.",
        "subnormals_flushed": "Below the smallest normal number there are subnormal numbers; you "
        "treat them as zero.",
        "in_binary64": "You add in Python's 64-bit floats. Round the sum to the format.",
    },
)
