"""Hidden half of lab 5, gradient accumulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from autograder.task import Answer, Case, Finding, Lab, Task
from peakmem.session import HIDDEN_MODULES

# largest_micro_batch: the threshold and the count of runs stay on this side.


def _micro_batch_cases(rng: np.random.Generator) -> list[Case]:
    def case(upper: int, fits: int, *, broken: bool = False, fixed: bool = False) -> Case:
        parts = ("right",) if broken else ("right", "few runs")
        secret = {"fits": fits, "broken": broken}
        return Case(parts, {"upper": upper}, secret=secret, fixed=fixed)

    upper = int(rng.integers(20, 3000))
    drawn = [
        case(upper, int(rng.integers(1, upper))),
        case(upper, upper),
        case(upper, 0),
        case(upper, int(rng.integers(1, upper)), broken=True),
    ]
    edges = [(1, 0), (1, 1), (2, 1), (3, 2), (1024, 1), (1024, 1023), (1000, 512), (1025, 513)]
    return drawn + [case(u, f, fixed=True) for u, f in edges]


def _micro_batch_runs(case: Case) -> Callable[[Any], Any]:
    def reply(question: Any) -> str:
        if not isinstance(question, int) or isinstance(question, bool):
            return "broken"
        if case.secret["broken"]:
            return "broken"
        return "fits" if question <= case.secret["fits"] else "out of memory"

    return reply


def _judge_micro_batch(case: Case, answer: Answer) -> Mapping[str, Finding]:
    upper, fits = case.inputs["upper"], case.secret["fits"]
    runs = len(answer.asked)
    if case.secret["broken"]:
        return {"right": _passes_errors_on(answer)}
    allowed = math.ceil(math.log2(upper)) + 2
    right = _finds(fits, upper, answer, runs)
    if runs <= allowed:
        return {"right": right, "few runs": Finding(right.ok, right.said, right.mistakes)}
    said = f"For upper={upper}: expected at most {allowed} runs, but it took {runs}."
    return {"right": right, "few runs": Finding(False, said, ("linear_search",))}


def _passes_errors_on(answer: Answer) -> Finding:
    if tuple(answer.value) == ("raised", "ValueError"):
        return Finding(True)
    return Finding(
        False,
        "A run that raised ValueError: expected your function to let it pass, "
        f"but it returned {answer.value[1]!r}.",
        ("catches_everything",),
    )


def _finds(fits: int, upper: int, answer: Answer, runs: int) -> Finding:
    kind, found = answer.value
    if kind == "value" and type(found) is int and found == fits:
        return Finding(True)
    near = {fits + 1: "one_too_many", fits - 1: "one_too_few"}
    mistakes = [near[found]] if kind == "value" and found in near else []
    if kind == "value" and found == 2 ** int(math.log2(fits or 1)) and found != fits:
        mistakes.append("powers_of_two_only")
    if any(question == 0 for question, _ in answer.asked):
        mistakes.insert(0, "runs_zero_samples")
    said = f"For upper={upper} where {fits} fit: expected {fits}, but got {found!r}."
    return Finding(False, said, tuple(mistakes))


largest_micro_batch = Task(
    id="lab05-largest_micro_batch",
    parts={"right": 3, "few runs": 1},
    defines=("largest_micro_batch",),
    probe="largest_micro_batch",
    cases=_micro_batch_cases,
    ask=_micro_batch_runs,
    judge=_judge_micro_batch,
    mistakes={
        "catches_everything": "Your search takes every error for a full memory. Catch "
        "peakmem.OutOfMemory alone: other errors are bugs, and have to reach the person.",
        "linear_search": "Your search tries the sizes one after another. Halve the interval with "
        "each run instead: 1024 sizes need 10 runs, not 1024.",
        "powers_of_two_only": "Your search stops at the largest power of two that fits. Go on "
        "between it and the next one.",
        "one_too_many": "Your answer is one too large: it is the smallest size that does not fit.",
        "one_too_few": "Your answer is one too small. Check the last size of the interval too.",
        "runs_zero_samples": "Your search runs a micro-batch of 0 samples, which tells nothing.",
    },
)

LAB = Lab(
    name="lab05_accumulation",
    tasks=(largest_micro_batch,),
    hides=HIDDEN_MODULES["lab05_accumulation"],
)
