"""Makes the Task of a "find the leak" exercise: same results, and a peak at or below a bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from autograder.model.compare import first_entry
from autograder.model.restrictions import NOTHING_BANNED, Ban
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.labs.compare import differing, show

__all__ = ["Leak", "leak_task"]

_SAME, _PEAK = "same results", "peak below the bound"
_SLACK_BYTES = 2**20  # used by the probe and Python, and counted by the kernel too
_RTOL = 1e-4  # float32 sums may be in another order

Function = Callable[..., Any]
Sizes = Mapping[str, Any]
Close = Callable[[Any, Any], bool]


@dataclass(frozen=True)
class Leak:
    """Code that computes correct results but wastes memory, and how to tell that it was fixed."""

    #: The lab's number, such as `lab04`; the task is then `lab04-find_the_leak`.
    lab: str
    #: The name of the function that students fix.
    function: str
    #: `work(function, **sizes)` in the lab's probes: makes inputs, calls, returns plain data.
    work: Callable[..., Any]
    #: The fixed function; answers are compared with its results.
    reference: Function
    #: Draws the sizes of a small run, which checks results.
    small: Callable[[np.random.Generator], Sizes]
    #: Draws the sizes of a large run, which checks the peak.
    large: Callable[[np.random.Generator], Sizes]
    #: The bytes that a large run may take, inputs included.
    most_bytes: Callable[[Sizes], int]
    #: Further sizes that check results, such as no items at all.
    edges: Sequence[Sizes] = field(default=(), kw_only=True)
    #: Relative tolerance for a large run's results. A mistake that it hides shows in the small
    #: runs, so if it exceeds the default, the point for the peak also requires their results.
    large_rtol: float = field(default=_RTOL, kw_only=True)
    #: Extra bytes for a library's internal buffers: the kernel counts them, the meter can't.
    scratch_bytes: int = field(default=0, kw_only=True)
    #: Address space for mapped files; files may be written only if it isn't 0.
    window_bytes: Callable[[Sizes], int] = field(default=lambda sizes: 0, kw_only=True)
    #: Computes the reference's results without torch, if possible, because importing torch takes
    #: longer than judging everything else.
    results: Callable[..., Any] | None = field(default=None, kw_only=True)
    #: Messages for students, by mistake id.
    mistakes: Mapping[str, str]
    #: Functions that make a mistake on purpose, by mistake id; their results identify it.
    mutants: Mapping[str, Function] = field(default_factory=dict)
    #: The fewest bytes that each mistake takes, largest first.
    leaks: Mapping[str, Callable[[Sizes], int]] = field(default_factory=dict)


def leak_task(
    leak: Leak,
    *,
    results_points: float = 1,
    peak_points: float = 1,
    stretch: bool = False,
    ban: Ban = NOTHING_BANNED,
    ranks: bool = False,
) -> Task:
    """Return the task `labNN-find_the_leak` of a leak; with `ranks`, sizes have the `world`.

    The lab's probe `find_the_leak(student, metered=True, **sizes)` calls `measured_run`. The kernel
    enforces a budget for the large run; where it can't, the meter's peak is compared with the bound
    in the exercise's text.
    """
    exercise = _Exercise(leak)
    return Task(
        id=f"{leak.lab}-find_the_leak",
        parts={_SAME: results_points, _PEAK: peak_points},
        defines=(leak.function,),
        probe="find_the_leak",
        cases=exercise.cases,
        judge=exercise.judge,
        mistakes=leak.mistakes,
        ban=ban,
        trust="measured",
        stretch=stretch,
        ranks=ranks,
    )


class _Exercise:
    """The cases of one leak, and the judge of their answers."""

    def __init__(self, leak: Leak) -> None:
        self.leak = leak
        self.expected = lru_cache(maxsize=64)(self._expected)
        self.results = lru_cache(maxsize=64)(self._results)

    def cases(self, rng: np.random.Generator) -> list[Case]:
        large = self.leak.large(rng)
        window_bytes = self.leak.window_bytes(large)
        most_bytes = self.leak.most_bytes(large) + self.leak.scratch_bytes + _SLACK_BYTES
        budget = Budget(most_bytes, window_bytes, bool(window_bytes))
        sizes = [self.leak.small(rng), self.leak.small(rng), *self.leak.edges]
        parts = (_SAME,) if self.leak.large_rtol == _RTOL else (_SAME, _PEAK)
        small = [Case(parts, one) for one in sizes]
        return [*small, Case((_PEAK,), large, budget=budget)]

    def judge(self, case: Case, answer: Answer) -> Mapping[str, Finding]:
        return dict.fromkeys(case.parts, self._finding(case, answer))

    def _finding(self, case: Case, answer: Answer) -> Finding:
        value = answer.value if isinstance(answer.value, dict) else {}
        if "results" not in value:
            return Finding(False, "The answers came back garbled.")
        got, sizes = value["results"], tuple(sorted(case.inputs.items()))
        close = _close
        if case.budget is not None:
            close = partial(_close, rtol=self.leak.large_rtol)
            rise = answer.metered("rise_bytes", "numpy_rise_bytes")
            if answer.breaks_budget(rise, self.leak.most_bytes(case.inputs)):
                return _too_much(self.leak, case.inputs, rise)
        expected = self.expected(sizes)
        if close(expected, got):
            return Finding(True)
        mutants = self.leak.mutants.items()
        known = [name for name, mutant in mutants if close(self.results(mutant, sizes), got)]
        where, right, wrong = _first_differing(expected, got, close)
        given = {name: size for name, size in case.inputs.items() if name != "seed"}
        differs = first_entry(("value", right), ("value", wrong), close)
        differs = differs or f"expected {show(right)}, but got {show(wrong)}."
        said = f"With {show(given)}{where}: {differs}"
        return Finding(False, said, tuple(known))

    def _expected(self, sizes: tuple[tuple[str, Any], ...]) -> Any:
        if self.leak.results is not None:
            return self.leak.results(**dict(sizes))
        return self.results(self.leak.reference, sizes)

    def _results(self, function: Function, sizes: tuple[tuple[str, Any], ...]) -> Any:
        return self.leak.work(function, **dict(sizes))


def _too_much(leak: Leak, sizes: Sizes, rise: int | None) -> Finding:
    most = leak.most_bytes(sizes) / 2**20
    took = "" if rise is None else f" Your code takes {rise / 2**20:.1f} MiB."
    if rise is not None and rise <= leak.most_bytes(sizes):  # the kernel refused more
        took = " Your code takes more, in objects other than tensors and arrays, such as lists."
    known = [name for name, least in leak.leaks.items() if (rise or 0) >= least(sizes)]
    return Finding(False, f"{leak.function} may take {most:.1f} MiB here.{took}", tuple(known[:1]))


def _first_differing(expected: Any, got: Any, close: Close) -> tuple[str, Any, Any]:
    """Return where results first differ, such as ` in rank 1`, and the two items that differ."""
    where = ""
    if _has_dicts(expected) and isinstance(got, list) and len(expected) == len(got):
        rank = [close(*pair) for pair in zip(expected, got, strict=True)].index(False)
        where, expected, got = f" in rank {rank}", expected[rank], got[rank]
    return (where, *differing(expected, got, close))


def _has_dicts(expected: Any) -> bool:
    return isinstance(expected, list) and bool(expected) and isinstance(expected[0], dict)


def _close(expected: Any, got: Any, rtol: float = _RTOL) -> bool:
    """Compare plain data, allowing for float32 arithmetic in another order."""
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and expected.keys() == got.keys()
            and all(_close(expected[key], got[key], rtol) for key in expected)
        )
    if _has_dicts(expected):
        return (
            isinstance(got, list)
            and len(got) == len(expected)
            and all(_close(*pair, rtol) for pair in zip(expected, got, strict=True))
        )
    if isinstance(expected, (str, bool, type(None))):
        return type(got) is type(expected) and bool(got == expected)
    try:
        a, b = np.asarray(expected), np.asarray(got)
        scale = float(np.abs(a[np.isfinite(a)]).max(initial=0.0))  # a mistake may diverge
        return a.shape == b.shape and bool(
            # A mistake may give NaN; no reference does.
            np.allclose(a, b, rtol=rtol, atol=rtol / 10 * scale, equal_nan=True)
        )
    except (TypeError, ValueError, OverflowError):  # ragged, not numbers, or too large
        return False
