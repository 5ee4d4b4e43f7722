"""sqrt_rule: peak and recomputed layers of equal segments, and the best length."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.model.compare import by_reference, same
from autograder.model.task import Case, Task

__all__ = ["peak_by_formula", "peak_by_simulation", "sqrt_rule"]

_PEAK, _AGAIN, _BEST = "peak_activations", "recomputed_layers", "best_segment_length"


def _segments(n: int, k: int) -> tuple[int, int]:
    """How many segments there are, and how long the last one is."""
    s = math.ceil(n / k)
    return s, n - (s - 1) * k


def peak_by_formula(n: int, k: int) -> int:
    """The peak of n layers in segments of k, in outputs of a layer."""
    k = min(k, n)
    s, r = _segments(n, k)
    return n + 1 if s == 1 else max(s + r, s - 1 + k)


def peak_by_simulation(n: int, k: int) -> int:
    """The peak by letting the chain run: the test's oracle for the formula."""
    bounds = [*range(0, n, k), n]
    live = {bounds[i] for i in range(len(bounds) - 1)} | set(range(bounds[-2], n + 1))
    peak = len(live)  # value i is the input of layer i; the chain's input is value 0
    live -= set(range(bounds[-2] + 1, n + 1))
    for start, end in reversed(list(itertools.pairwise(bounds))[:-1]):
        live.discard(end)  # the segment behind is done, its input with it
        peak = max(peak, len(live | set(range(start, end + 1))))
    return peak


def _again(n: int, k: int) -> int:
    return (_segments(n, k)[0] - 1) * k


def _best(peak: Callable[[int, int], int]) -> Callable[[int], frozenset[int]]:
    def best(n: int) -> frozenset[int]:
        peaks = {k: peak(n, k) for k in range(1, n + 1)}
        return frozenset(k for k in peaks if peaks[k] == min(peaks.values()))

    return best


def _call(
    peak: Callable[[int, int], int] = peak_by_formula,
    again: Callable[[int, int], int] = _again,
    best: Callable[[int], frozenset[int]] | None = None,
) -> Callable[..., Any]:
    functions: dict[str, Callable[..., Any]] = {
        _PEAK: peak,
        _AGAIN: again,
        _BEST: best or _best(peak),
    }
    return lambda name, *arguments: functions[name](*arguments)


def _equal(expected: Any, got: Any) -> bool:
    if isinstance(expected, frozenset):  # any of these is right
        return type(got) is int and got in expected
    return same(expected, got)


def _of_segments(formula: Callable[[int, int, int, int], int]) -> Callable[[int, int], int]:
    return lambda n, k: formula(n, min(k, n), *_segments(n, min(k, n)))


_MUTANTS = {
    "last_is_whole": _call(peak=_of_segments(lambda n, k, s, r: s + k)),
    "recomputed_forgotten": _call(peak=_of_segments(lambda n, k, s, r: s + r)),
    "last_forgotten": _call(peak=_of_segments(lambda n, k, s, r: n + 1 if s == 1 else s - 1 + k)),
    "input_forgotten": _call(
        peak=_of_segments(lambda n, k, s, r: n if s == 1 else max(s + r, s - 1 + k) - 1)
    ),
    "inputs_forgotten": _call(peak=_of_segments(lambda n, k, s, r: k + (s == 1))),
    "long_segment": _call(peak=lambda n, k: peak_by_formula(n, k) if k <= n else k + 1),
    "all_again": _call(again=lambda n, k: n),
    "all_but_one_segment": _call(again=lambda n, k: max(n - k, 0)),
    "whole_segments": _call(again=lambda n, k: n // min(k, n) * min(k, n)),
    "square_root": _call(best=lambda n: frozenset({math.isqrt(n)})),
    "least_peak_itself": _call(
        best=lambda n: frozenset({min(peak_by_formula(n, k) for k in range(1, n + 1))})
    ),
}


def _cases(rng: np.random.Generator) -> list[Case]:
    pairs = [[int(n), int(rng.integers(1, n + 1))] for n in rng.integers(5, 60, 12)]
    # One segment; segments longer than the chain; the last one short, whole, and of one layer.
    pairs += [[n, n] for n in (1, 9)] + [[6, 20], [10, 4], [12, 4], [13, 4], [24, 7], [9, 8]]
    hidden = [8, 15, 24, 30, 1, 2, 3, 64, *map(int, rng.integers(5, 120, 8))]
    return [
        *(
            Case((name,), {"calls": [[name, *pair]]})
            for name in (_PEAK, _AGAIN)
            for pair in pairs[:2]
        ),
        Case((_PEAK,), {"calls": [[_PEAK, *pair] for pair in pairs]}),
        Case((_AGAIN,), {"calls": [[_AGAIN, *pair] for pair in pairs]}),
        Case((_BEST,), {"calls": [[_BEST, int(rng.integers(5, 120))]]}),
        Case((_BEST,), {"calls": [[_BEST, n] for n in hidden]}, fixed=True),
    ]


def _form(value: Any) -> str:
    return " or ".join(map(str, sorted(value))) if isinstance(value, frozenset) else str(value)[:80]


sqrt_rule = Task(
    id="lab04-sqrt_rule",
    parts={_PEAK: 1, _AGAIN: 1, _BEST: 1},
    defines=(_PEAK, _AGAIN, _BEST),
    probe="sqrt_rule",
    cases=_cases,
    judge=by_reference(
        _call(),
        _MUTANTS,
        equal=_equal,
        write=lambda name, *arguments: f"{name}({', '.join(map(str, arguments))})",
        form=_form,
    ),
    mistakes={
        "square_root": "The root of N, rounded down, is not always best: the last segment may be "
        "short. Try every length and take one of the least peak.",
        "least_peak_itself": "You return the least peak. Asked for is the length that reaches it.",
        "last_is_whole": "Your peak takes the last segment for a whole one. It has r outputs, and "
        "the peak of the others is one input lower.",
        "recomputed_forgotten": "Your peak is that at the end of forward. When a whole segment is "
        "recomputed, its k outputs are live.",
        "last_forgotten": "Your peak looks at recomputed segments only. At the end of forward all "
        "inputs and the last segment's outputs are live.",
        "input_forgotten": "You leave out the chain's input, which is kept too.",
        "inputs_forgotten": "You leave out the segments' inputs, which wait for their turn.",
        "long_segment": "A segment is never longer than the chain: k > N means N.",
        "all_again": "You recompute all layers. The last segment is still there after forward.",
        "all_but_one_segment": "The segment that is not recomputed is the last, and it may be "
        "short: N - k is too few then.",
        "whole_segments": "Where k divides N, the last whole segment is not recomputed either.",
    },
)
