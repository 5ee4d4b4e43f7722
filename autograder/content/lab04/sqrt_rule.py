"""sqrt_rule: the peak and the recomputed layers of equal segments, and the best length."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.model.compare import by_reference, same
from autograder.model.task import Case, Task

__all__ = ["peak_by_formula", "sqrt_rule"]

_PEAK, _AGAIN, _BEST = "peak_activations", "recomputed_layers", "best_segment_length"


def _segments(n: int, k: int) -> tuple[int, int]:
    """The number of segments, and the length of the last one."""
    s = math.ceil(n / k)
    return s, n - (s - 1) * k


def peak_by_formula(n: int, k: int, saved: int = 1) -> int:
    """The peak, in outputs, of n layers in segments of k, if each layer saves `saved` outputs."""
    k = min(k, n)
    s, r = _segments(n, k)
    return n * saved + 1 if s == 1 else max(s + r * saved, s - 1 + k * saved)


def _again(n: int, k: int) -> int:
    k = min(k, n)
    return (_segments(n, k)[0] - 1) * k


def _best(peak: Callable[..., int]) -> Callable[..., frozenset[int]]:
    def best(n: int, saved: int = 1) -> frozenset[int]:
        peaks = {k: peak(n, k, saved) for k in range(1, n + 1)}
        return frozenset(k for k in peaks if peaks[k] == min(peaks.values()))

    return best


def _call(
    peak: Callable[..., int] = peak_by_formula,
    again: Callable[[int, int], int] = _again,
    best: Callable[..., frozenset[int]] | None = None,
) -> Callable[..., Any]:
    functions: dict[str, Callable[..., Any]] = {
        _PEAK: peak,
        _AGAIN: again,
        _BEST: best or _best(peak),
    }
    return lambda name, *arguments: functions[name](*arguments)


def _equal(expected: Any, got: Any) -> bool:
    if isinstance(expected, frozenset):  # any of these is correct
        return any(same(one, got) for one in expected)
    return same(expected, got)


def _of_segments(formula: Callable[[int, int, int, int, int], int]) -> Callable[..., int]:
    """A peak from a formula in n, k, s, r and saved."""
    return lambda n, k, saved=1: formula(n, min(k, n), *_segments(n, min(k, n)), saved)


def _roots(x: float) -> frozenset[int]:
    """The root, rounded to a length in every possible way."""
    root = math.sqrt(x)
    return frozenset({max(1, math.floor(root)), max(1, round(root)), math.ceil(root)})


def _only(length: Callable[[int, int], int]) -> Callable[..., frozenset[int]]:
    return lambda n, saved=1: frozenset({length(n, saved)})


_MUTANTS = {
    "saved_forgotten": _call(peak=lambda n, k, saved=1: peak_by_formula(n, k)),
    "inputs_saved_too": _call(
        peak=_of_segments(
            lambda n, k, s, r, u: n * u + 1 if s == 1 else max((s + r) * u, (s - 1 + k) * u)
        )
    ),
    "last_is_whole": _call(peak=_of_segments(lambda n, k, s, r, u: s + k * u)),
    "recomputed_forgotten": _call(peak=_of_segments(lambda n, k, s, r, u: s + r * u)),
    "last_forgotten": _call(
        peak=_of_segments(lambda n, k, s, r, u: n * u + 1 if s == 1 else s - 1 + k * u)
    ),
    "input_forgotten": _call(
        peak=_of_segments(
            lambda n, k, s, r, u: n * u if s == 1 else max(s + r * u, s - 1 + k * u) - 1
        )
    ),
    "inputs_forgotten": _call(peak=_of_segments(lambda n, k, s, r, u: k * u + (s == 1))),
    "long_segment": _call(
        peak=lambda n, k, saved=1: peak_by_formula(n, k, saved) if k <= n else k * saved + 1
    ),
    "all_again": _call(again=lambda n, k: n),
    "all_but_one_segment": _call(again=lambda n, k: max(n - k, 0)),
    "whole_segments": _call(again=lambda n, k: n // min(k, n) * min(k, n)),
    "square_root": _call(best=_only(lambda n, saved: math.isqrt(n))),
    "root_without_saved": _call(best=lambda n, saved=1: _roots(n)),
    "root_of_the_quotient": _call(best=lambda n, saved=1: _roots(n / saved)),
    "least_peak_itself": _call(
        best=_only(lambda n, saved: min(peak_by_formula(n, k, saved) for k in range(1, n + 1)))
    ),
}


def _cases(rng: np.random.Generator) -> list[Case]:
    pairs = [[int(n), int(rng.integers(1, n + 1))] for n in rng.integers(5, 60, 12)]
    # One segment; a segment longer than the chain; a last segment that is short, full, one layer.
    pairs += [[n, n] for n in (1, 9)] + [[6, 20], [10, 4], [12, 4], [13, 4], [24, 7], [9, 8]]
    units = [1, 2, 5, 17, *map(int, rng.integers(2, 20, len(pairs)))]
    peaks = [*pairs, *([*pair, u] for pair, u in zip(pairs, units, strict=False)), [96, 2, 17]]
    lengths = [8, 15, 24, 30, 1, 2, 3, 64, *map(int, rng.integers(5, 120, 8))]
    best = [[n] for n in lengths] + [[n, u] for n in (8, 15, 24, 30) for u in (1, 2, 5, 17)]
    best += [[36, 17], [62, 10]]  # the rounded root of n / saved isn't among the best
    best += [[35], [63], [119, 2]]  # two equal peaks in a row are above the lowest
    best += [[80], [168], [195]]  # a ternary search misses the best
    shown = [pairs[0], [*pairs[1], int(rng.integers(2, 18))]]
    return [
        *(Case((_PEAK,), {"calls": [[_PEAK, *pair]]}) for pair in shown),
        *(Case((_AGAIN,), {"calls": [[_AGAIN, *pair]]}) for pair in pairs[:2]),
        Case((_PEAK,), {"calls": [[_PEAK, *pair] for pair in peaks]}),
        Case((_AGAIN,), {"calls": [[_AGAIN, *pair] for pair in pairs]}),
        Case((_BEST,), {"calls": [[_BEST, int(rng.integers(5, 120)), int(rng.integers(1, 18))]]}),
        Case((_BEST,), {"calls": [[_BEST, *call] for call in best]}, fixed=True),
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
        "square_root": "The root of n, rounded down, isn't always best, because the last segment "
        "may be short. Try every length, and take one with the lowest peak.",
        "root_without_saved": "The root of n is best only if a layer saves nothing but its "
        "output. The more it saves, the shorter the best segment. Try every length.",
        "saved_forgotten": "You count each layer as one unit. A layer that is live for backward "
        "holds `saved` units; a segment's input is one unit.",
        "inputs_saved_too": "You count `saved` units for the segments' inputs too. Each of them is "
        "one tensor: one unit.",
        "root_of_the_quotient": "The root of n / saved, rounded, is close, but not always best: "
        "lengths are whole, and the last segment may be short. Try every length.",
        "least_peak_itself": "You return the lowest peak. Return the segment length that reaches "
        "it.",
        "last_is_whole": "You treat the last segment as a whole one. It has r layers, and while "
        "another segment is recomputed, one input fewer is live.",
        "recomputed_forgotten": "Your peak is the one at the end of forward. When a whole segment "
        "is recomputed, its k outputs are live.",
        "last_forgotten": "Your peak considers only recomputed segments. At the end of forward, "
        "all inputs and the last segment's outputs are live.",
        "input_forgotten": "You leave out the chain's input, which is kept too.",
        "inputs_forgotten": "You leave out the segments' inputs, which stay until their segment "
        "is recomputed.",
        "long_segment": "A segment is never longer than the chain: treat k > n as k = n.",
        "all_again": "You recompute all layers. The last segment is still live after forward.",
        "all_but_one_segment": "The last segment isn't recomputed, and it may be short: then n - "
        "k is too few.",
        "whole_segments": "If k divides n, the last segment is whole, but still isn't recomputed.",
    },
)
