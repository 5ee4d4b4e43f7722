"""Exercise: the largest micro-batch. The trusted side decides what fits, and counts the runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.model.compare import show
from autograder.model.task import Answer, Case, Finding, Task

__all__ = ["largest_micro_batch"]


def _micro_batch_cases(rng: np.random.Generator) -> list[Case]:
    def case(
        upper: int, fits: int, *, broken: str = "", good_runs: int = 0, fixed: bool = False
    ) -> Case:
        parts = ("right",) if broken else ("right", "few runs")
        secret = {"fits": fits, "broken": broken, "good_runs": good_runs}
        return Case(parts, {"upper": upper}, secret=secret, fixed=fixed)

    upper = int(rng.integers(20, 3000))
    drawn = [
        case(upper, int(rng.integers(1, upper))),
        case(upper, upper),
        case(upper, 0),
        *(case(upper, int(rng.integers(1, upper)), broken=reply) for reply in _ERRORS),
        *(  # a search may treat its first runs, 1 and upper, differently
            case(upper, int(rng.integers(1, upper)), broken=reply, good_runs=1 + 2 * (number % 2))
            for number, reply in enumerate(_ERRORS)
        ),
    ]
    drawn += [case(1, 1, broken=reply) for reply in _ERRORS]  # the first run is the last one
    edges = [(1, 0), (1, 1), (2, 1), (3, 2), (4096, 2), (1024, 1023), (1000, 512), (1025, 513)]
    return drawn + [case(u, f, fixed=True) for u, f in edges]


def _micro_batch_runs(case: Case) -> Callable[[Any], Any]:
    runs = itertools.count()

    def reply(question: Any) -> str:
        if next(runs) >= case.secret["good_runs"] and case.secret["broken"]:
            return str(case.secret["broken"])
        if type(question) is not int:
            return "broken"
        return "fits" if question <= case.secret["fits"] else "out of memory"

    return reply


def _judge_micro_batch(case: Case, answer: Answer) -> Mapping[str, Finding]:
    if not (isinstance(answer.value, (list, tuple)) and len(answer.value) == 2):
        return dict.fromkeys(case.parts, Finding(False, "The answer came back garbled."))
    kind, found = answer.value
    if not isinstance(kind, str):
        return dict.fromkeys(case.parts, Finding(False, "The answer came back garbled."))
    upper = case.inputs["upper"]
    if kind == "endless":
        return dict.fromkeys(case.parts, _endless(upper, found))
    if case.secret["broken"]:
        if len(answer.asked) <= case.secret["good_runs"]:  # it finished before the failing run
            return {"right": _finds(case.secret["fits"], upper, kind, found)}
        return {"right": _passes_errors_on(case.secret["broken"], kind, found)}
    right = _finds(case.secret["fits"], upper, kind, found)
    if right.ok and (outside := _outside(upper, answer.asked)):
        right = outside
    allowed = math.ceil(math.log2(upper)) + 2
    runs = len(answer.asked)
    if runs <= allowed:
        return {"right": right, "few runs": right}  # few runs earn nothing if the answer is wrong
    said = f"For upper={upper}: expected at most {allowed} runs, but your search took {runs}."
    return {"right": right, "few runs": Finding(False, said, _wastes(answer.asked))}


def _endless(upper: int, runs: Any) -> Finding:
    said = f"For upper={upper}: your search was stopped after {show(runs)} runs without an end."
    return Finding(False, said, ("never_ends",))


def _passes_errors_on(broken: str, kind: Any, found: Any) -> Finding:
    if kind == "raised" and show(found) == show(_ERRORS[broken]):
        return Finding(True)
    return Finding(
        False,
        f"When run raised {_ERRORS[broken]}: expected your function to let the error through, but "
        f"it returned {show(found)}.",
        (*_TOO_WIDE.get(broken, ()), "catches_everything", "by_its_text"),
    )


_ERRORS = {
    "broken": "ValueError",
    "broken otherwise": "RuntimeError",
    "another memory": "MemoryError",
    "another of peakmem": "Infeasible",
}
_TOO_WIDE = dict.fromkeys(("another memory", "another of peakmem"), ("catches_a_base",)) | {
    "broken otherwise": ("catches_runtime_error",)
}


def _outside(upper: int, asked: Sequence[tuple[Any, Any]]) -> Finding | None:
    """Return what is wrong if the search ran an impossible size."""
    sizes = [size for size, _ in asked if type(size) is int and not 1 <= size <= upper]
    if not sizes:
        return None
    said = f"For upper={upper}: your search called run({sizes[0]}), but sizes go from 1 to {upper}."
    return Finding(False, said, ("outside_the_range",))


def _finds(fits: int, upper: int, kind: Any, found: Any) -> Finding:
    if kind == "raised":
        said = f"For upper={upper} where {fits} fit: {show(found)} came out of your search."
        return Finding(False, said, ("lets_it_pass", "catches_runtime_error", "by_its_text"))
    if type(found) is not int:
        said = f"For upper={upper}: expected a whole number, but got {show(found)}."
        return Finding(False, said)
    if found == fits:
        return Finding(True)
    explains = {
        "assumes_one_fits": fits == 0 and found == 1,
        "powers_of_two_only": fits > 0 and found == 2 ** (fits.bit_length() - 1),
        "one_too_many": found == fits + 1,
        "one_too_few": found == fits - 1,
    }
    mistakes = tuple(name for name, made in explains.items() if made)
    said = f"For upper={upper} where {fits} fit: expected {fits}, but got {show(found)}."
    return Finding(False, said, mistakes)


def _wastes(asked: Sequence[tuple[Any, Any]]) -> tuple[str, ...]:
    """The reason that a search needs too many runs, judged by the sizes it ran."""
    sizes = [size for size, _ in asked if type(size) is int]
    steps = {later - earlier for earlier, later in itertools.pairwise(sizes)}
    if steps in ({1}, {-1}):
        return ("linear_search",)
    if len(set(sizes)) < len(sizes):
        return ("runs_a_size_twice",)
    if sizes[:4] == [1, 2, 4, 8]:
        return ("doubles_first",)
    return ()


largest_micro_batch = Task(
    id="lab05-largest_micro_batch",
    parts={"right": 3, "few runs": 1},
    defines=("largest_micro_batch",),
    probe="largest_micro_batch",
    stretch=True,
    cases=_micro_batch_cases,
    ask=_micro_batch_runs,
    judge=_judge_micro_batch,
    mistakes={
        "catches_a_base": "Your search catches a base class of peakmem.OutOfMemory, so it also "
        "catches other errors. Catch peakmem.OutOfMemory itself.",
        "lets_it_pass": "peakmem.OutOfMemory came out of your search. Catch it where you call "
        "run(m): only this error means that m samples are too many.",
        "catches_runtime_error": "Your search catches RuntimeError, which torch raises for most "
        "bugs. peakmem.OutOfMemory isn't a RuntimeError: catch it by name, and nothing else.",
        "catches_everything": "Your search mistakes other errors for running out of memory, or "
        "hides them, as a return in `finally` does. Catch only peakmem.OutOfMemory: other errors "
        "are bugs and must reach the user.",
        "by_its_text": "Your search recognizes running out of memory by the error's message. "
        "Messages differ, and a bug's message may mention memory too: catch peakmem.OutOfMemory "
        "by its type.",
        "never_ends": "Your search runs on without coming to an end. Its range must shrink with "
        "each run, even if only two sizes are left: round the middle toward the end that moves.",
        "outside_the_range": "Your search runs an impossible size: below 1, or above upper.",
        "linear_search": "Your search tries the sizes one after another. Halve the interval with "
        "each run instead: 1024 sizes need about 10 runs, not 1024.",
        "runs_a_size_twice": "Your search runs the same size more than once. Remember the first "
        "run's result.",
        "doubles_first": "Your search doubles the size until it no longer fits, then halves the "
        "interval, which takes about two runs for each bit of the answer. You know `upper`, so "
        "halve from the start.",
        "assumes_one_fits": "If not even one sample fits, the answer is 0. Your search assumes "
        "that one does.",
        "powers_of_two_only": "Your search stops at the largest power of two that fits. Continue "
        "between it and the next one.",
        "one_too_many": "Your answer is one too large: it is the smallest size that doesn't fit.",
        "one_too_few": "Your answer is one too small. Check the last size of the interval too.",
    },
)
