"""Exercise: a least-squares line of peak memory over samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from autograder.content.lab05.gradients import number_in
from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["line_of", "memory_line"]

Line = tuple[float, float]
Numbers = Sequence[float]
_TOLERANCE = 1e-6
_FINE = 1e-5
_BELOW = (12, 5, 40, 36, 90)  # MiB
_COARSE = 0.5  # for a small slope over many bytes, in float32


def line_of(sizes: Numbers, peaks: Numbers) -> Line:
    """Return (fixed, slope) of the least-squares line, exactly.

    >>> line_of([1, 2, 4], [30, 40, 60])
    (20.0, 10.0)
    """
    xs, ys = [Fraction(x) for x in sizes], [Fraction(y) for y in peaks]
    n, sum_x, sum_y = len(xs), sum(xs), sum(ys)
    products = sum(x * y for x, y in zip(xs, ys, strict=True))
    slope = (n * products - sum_x * sum_y) / (n * sum(x * x for x in xs) - sum_x**2)
    return float((sum_y - slope * sum_x) / n), float(slope)


def _through(i: int, j: int) -> Callable[[Numbers, Numbers], Line]:
    """The line through two given points."""

    def line(sizes: Numbers, peaks: Numbers) -> Line:
        slope = (peaks[j] - peaks[i]) / (sizes[j] - sizes[i])
        return peaks[i] - slope * sizes[i], slope

    return line


def _swapped(sizes: Numbers, peaks: Numbers) -> Line:
    fixed, slope = line_of(sizes, peaks)
    return slope, fixed


def _through_the_origin(sizes: Numbers, peaks: Numbers) -> Line:
    products = sum(x * y for x, y in zip(sizes, peaks, strict=True))
    return 0.0, products / sum(x * x for x in sizes)


def _sizes_by_position(sizes: Numbers, peaks: Numbers) -> Line:
    return line_of(range(len(sizes)), peaks)


def _mean_slope(sizes: Numbers, peaks: Numbers) -> Line:
    slopes = np.diff(peaks) / np.diff(sizes)
    slope = float(np.mean(slopes))
    return float(np.mean(peaks) - slope * np.mean(sizes)), slope


def _slope_times(factor: Callable[[int], float]) -> Callable[[Numbers, Numbers], Line]:
    """The line through the mean point with a slope that is too large by a factor."""

    def line(sizes: Numbers, peaks: Numbers) -> Line:
        slope = factor(len(sizes)) * line_of(sizes, peaks)[1]
        return float(np.mean(peaks) - slope * np.mean(sizes)), slope

    return line


def _extremes(sizes: Numbers, peaks: Numbers) -> Line:
    return _through(int(np.argmin(sizes)), int(np.argmax(sizes)))(sizes, peaks)


def _rounded(sizes: Numbers, peaks: Numbers) -> Line:
    fixed, slope = line_of(sizes, peaks)
    return round(fixed), round(slope)


class _Coarse(tuple[float, ...]):
    """A line that is right except for float32 rounding."""


class _Fine(_Coarse):
    """Such a line of so few bytes that little precision is lost."""


def _float32(sizes: Numbers, peaks: Numbers) -> Line:
    line = line_of(sizes, peaks)
    # For fewer bytes float32 keeps at least five digits, and other mistakes keep fewer.
    return _Coarse(line) if max(peaks) > 2**30 else _Fine(line)  # type: ignore[return-value]


def _float32_slope(sizes: Numbers, peaks: Numbers) -> float:
    x, y = (np.asarray(numbers, np.float32) for numbers in (sizes, peaks))
    dx = x - x.mean()
    return float((dx * (y - y.mean())).sum() / (dx * dx).sum())


def _equal(expected: Any, got: Any) -> bool:
    got = got.tolist() if isinstance(got, np.ndarray) else got
    if not (isinstance(got, (list, tuple)) and len(got) == 2):
        return False
    numbers = [number for part in got if (number := number_in(part)) is not None]
    near, at_least = _TOLERANCE, 0.0
    if isinstance(expected, _Fine):  # a number near 0 is off by as many bytes as the other
        near, at_least = _FINE, _FINE * max(map(abs, expected))
    elif isinstance(expected, _Coarse):
        near = _COARSE
    return len(numbers) == 2 and bool(np.allclose(numbers, expected, rtol=near, atol=at_least))


def _cases(rng: np.random.Generator) -> list[Case]:
    mib = 2**20

    def call(sizes: Sequence[int], noise: float = 0.0) -> list[Any]:
        fixed = int(rng.integers(5, 50)) * mib
        slope = int(rng.integers(1, 5)) * mib
        peaks = [fixed + slope * size for size in sizes]
        off = [int(rng.normal() * noise * slope) for _ in sizes]
        return [list(sizes), [peak + o for peak, o in zip(peaks, off, strict=True)]]

    def case(*calls: list[Any], fixed: bool = False) -> Case:
        return Case(("right",), {"calls": list(calls)}, fixed=fixed)

    several = sorted(int(size) for size in rng.choice(np.arange(1, 65), 6, replace=False))
    mixed = [int(size) for size in rng.permutation([1, 2, 4, 8, 16, 32])]
    # Few bytes, to show rounding; and many bytes with a small slope, to show float32.
    few = [[1, 2, 4, 7], [int(n) for n in np.cumsum(rng.integers(20, 60, 4)) * [1, 2, 2, 3]]]
    # If the fixed part were near 0, float32 would cost it more precision than other numbers.
    while abs(line_of(*few)[0]) < 5 or min(abs(p - round(p)) for p in line_of(*few)) < 0.1:
        few[1][0] += 1
    # A size measured twice with the same peak: both points count.
    twice = [[2, 3, 2, 9], [int(n) for n in rng.integers(20, 60) + np.array([0, 40, 0, 90])]]
    sizes = [1, 2, 4, 8, 16]
    slope, fixed = int(rng.integers(100_000, 200_000)), int(rng.integers(35 * 10**9, 60 * 10**9))
    many = [sizes, [fixed + slope * size + int(rng.integers(-99, 99)) for size in sizes]]
    # The float32 slope must not be a whole number of bytes, or it would look rounded.
    while abs(_float32_slope(*many) - round(line_of(*many)[1])) < 5:
        many[1][-1] += 997
    # A line that starts below 0, with peaks that aren't in the order of the sizes.
    below = [[10, 11, 20, 21, 30], [mib * int(n) for n in rng.integers(1, 9) + np.array(_BELOW)]]
    first, second = call([1, 2, 4, 8, 16], 0.5), call([3, 5, 9])
    arrays = [np.array(column) for column in call([2, 3, 7, 20], 0.3)]
    return [
        case(call([1, 2, 4, 8]), call([4, 16])),
        case(call(several, 1.0), call(mixed, 1.0)),
        case(few),
        case(twice),
        case(below),
        case(many),
        case(first, [tuple(column) for column in second], arrays, fixed=True),
        case(call([16, 4, 8, 6, 12], 0.5), call([3, 8, 12, 5, 8], 2.0), fixed=True),
    ]


memory_line = Task(
    id="lab05-memory_line",
    parts={"right": 2},
    defines=("memory_line",),
    probe="memory_line",
    stretch=True,
    cases=_cases,
    judge=by_reference(
        line_of,
        {
            "swapped": _swapped,
            "through_the_origin": _through_the_origin,
            "first_and_last": _through(0, -1),
            "first_two": _through(0, 1),
            "extremes": _extremes,
            "rounded": _rounded,
            "float32": _float32,
            "sizes_by_position": _sizes_by_position,
            "mean_slope": _mean_slope,
            "covariance_by_one_less": _slope_times(lambda n: n / (n - 1)),
            "variance_by_one_less": _slope_times(lambda n: (n - 1) / n),
        },
        equal=_equal,
    ),
    mistakes={
        "swapped": "Your answer's order is swapped: return the fixed bytes first, then the bytes "
        "per sample. (np.polyfit returns the slope first.)",
        "through_the_origin": "Your line goes through zero. Weights, gradients and optimizer "
        "state take memory even without samples: fit a fixed part too.",
        "first_and_last": "Your line goes through the first and the last point. The peaks are "
        "noisy, so use all points: fit by least squares.",
        "first_two": "Your line goes through the first two points only. Use all points.",
        "extremes": "Your line goes through the smallest and the largest size. The peaks are "
        "noisy, so use all points: fit by least squares.",
        "rounded": "You round to whole bytes. Return floats as they come.",
        "float32": "You compute in float32, whose numbers are 4096 bytes apart in the range of a "
        "GPU's peaks. Use Python floats or float64.",
        "sizes_by_position": "You fit against positions in the list. Fit against the batch sizes, "
        "which need not be 0, 1, 2, ...",
        "mean_slope": "Your slope is the mean of the slopes between neighbours. Least squares "
        "gives distant points more weight.",
        "covariance_by_one_less": "Your slope is n / (n - 1) times too large: np.cov divides by "
        "n - 1, np.var by n. Divide both sums by the same number, or neither.",
        "variance_by_one_less": "Your slope is (n - 1) / n times too small: torch.var divides by "
        "n - 1, a mean of products by n. Divide both sums by the same number, or neither.",
    },
)
