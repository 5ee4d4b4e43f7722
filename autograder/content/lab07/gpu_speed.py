"""GPU exercise: how much faster is a matrix product in fewer bits?

How far the figures can be trusted: seconds are measured in the student's process, because nothing
outside it can time a GPU that is shared with the rest of the machine. So the probe times the same
products on the same GPU just before, and the student's seconds are compared with the probe's. Code
that tampers with the clock or the probe can change both. If the figures are faster than any GPU,
the exercise isn't judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.model.compare import show
from autograder.model.restrictions import Ban
from autograder.model.task import Answer, Case, Finding, Task
from peakmem.probes.lab07 import PRODUCT_SIZE

__all__ = ["gpu_speed"]

_NAMES = ("float32", "tf32", "float16", "bfloat16")
_TOLERANCE = 1.5  # clocks and power limits change a GPU's times by about ten percent
_FASTEST_FLOPS = 1e16  # the fastest accelerators of 2026 reach about 2.5e15 in 16 bits
_OFF = 10.0  # a launch takes microseconds, a product milliseconds: no synchronized time is so short


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    return {"seconds": _finding(answer.value)}


def _finding(value: Any) -> Finding:
    if not isinstance(value, dict) or value.keys() != {"own", "student"}:
        return Finding(False, "The seconds came back garbled.")
    own, student = value["own"], value["student"]
    if not _are_seconds(own) or any(2 * PRODUCT_SIZE**3 / s > _FASTEST_FLOPS for s in own.values()):
        doubt = "The grader's own times on this GPU are implausible, so it can't judge yours."
        return Finding(False, doubt=doubt)
    if not _are_seconds(student):
        said = f"Expected a dict of seconds with exactly the keys {', '.join(_NAMES)}, but got "
        return Finding(False, f"{said}{show(student)}.")
    if all(_near(student[name], own[name]) for name in _NAMES):
        return Finding(True)
    mistakes = tuple(name for name, made in _EXPLAINS.items() if made(own, student))
    return Finding(False, _say(own, student), mistakes)


def _are_seconds(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == set(_NAMES)
        and all(type(s) in (int, float) and math.isfinite(s) and s > 0 for s in value.values())
    )


def _near(seconds: float, expected: float) -> bool:
    return expected / _TOLERANCE <= seconds <= expected * _TOLERANCE


def _say(own: Mapping[str, float], student: Mapping[str, float]) -> str:
    name = next(name for name in _NAMES if not _near(student[name], own[name]))
    base = own["float32"]
    return (
        f"A product in {name} takes this GPU {own[name] / base:.3g} times its float32 time of "
        f"{base * 1000:.3g} ms, but your {student[name] * 1000:.3g} ms are "
        f"{student[name] / base:.3g} times that time."
    )


# Each tells whether a mistake would have given these seconds.


def _not_synchronized(own: Mapping[str, float], student: Mapping[str, float]) -> bool:
    return student["float32"] < own["float32"] / _OFF


def _returns_speedups(own: Mapping[str, float], student: Mapping[str, float]) -> bool:
    return all(_near(student[name], own["float32"] / own[name]) for name in _NAMES)


def _milliseconds(own: Mapping[str, float], student: Mapping[str, float]) -> bool:
    return all(_near(student[name], 1000 * own[name]) for name in _NAMES)


def _sum_of_repeats(own: Mapping[str, float], student: Mapping[str, float]) -> bool:
    ratios = [student[name] / own[name] for name in _NAMES]
    return min(ratios) > _TOLERANCE and max(ratios) / min(ratios) < _TOLERANCE


def _tf32_left_on(own: Mapping[str, float], student: Mapping[str, float]) -> bool:
    swapped = {**own, "float32": own["tf32"]}
    return all(_near(student[name], swapped[name]) for name in _NAMES)


def _tf32_never_on(own: Mapping[str, float], student: Mapping[str, float]) -> bool:
    swapped = {**own, "tf32": own["float32"]}
    return all(_near(student[name], swapped[name]) for name in _NAMES)


def _times_the_setup(own: Mapping[str, float], student: Mapping[str, float]) -> bool:
    """The fastest product is slowed most, so a fixed cost must be timed along with it."""
    ratios = {name: student[name] / own[name] for name in _NAMES}
    fastest = min(own, key=own.__getitem__)
    return min(ratios.values()) > 1 / _TOLERANCE and ratios[fastest] > _TOLERANCE


_EXPLAINS = {
    "not_synchronized": _not_synchronized,
    "returns_speedups": _returns_speedups,
    "milliseconds": _milliseconds,
    "sum_of_repeats": _sum_of_repeats,
    "tf32_left_on": _tf32_left_on,
    "tf32_never_on": _tf32_never_on,
    "times_the_setup": _times_the_setup,
}


def _cases(rng: np.random.Generator) -> list[Case]:
    return [Case(("seconds",), {})]


gpu_speed = Task(
    id="lab07-gpu_speed",
    parts={"seconds": 2},
    defines=("speedup",),
    probe="gpu_speed",
    stretch=True,
    cases=_cases,
    judge=_judge,
    trust="measured",
    needs_gpu=True,
    seconds=60.0,
    ban=Ban(allows=frozenset({"torch.utils.benchmark"})),
    mistakes={
        "not_synchronized": "You timed queueing a product, not computing it: the GPU works while "
        "Python continues. Call torch.cuda.synchronize() before you read the clock, both times.",
        "returns_speedups": "These are ratios to float32. Return the seconds themselves.",
        "milliseconds": "These are milliseconds (elapsed_time returns them). Divide by 1000.",
        "sum_of_repeats": "All your times are too long by the same factor. If you time several "
        "products together, divide by their number.",
        "tf32_left_on": "Your float32 time is really TF32's. Set the precision of float32 "
        "products to 'highest' before you time float32.",
        "tf32_never_on": "Your TF32 time is really float32's. Set the precision of float32 "
        "products to 'high' before you time TF32.",
        "times_the_setup": "Your times include more than the product, most visibly for the "
        "fastest product. Before the clock starts, make the matrices and run a product to warm up.",
    },
)
