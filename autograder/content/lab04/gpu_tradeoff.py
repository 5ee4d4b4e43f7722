"""GPU exercise: what a segment length costs in time and saves in memory.

Seconds and bytes are measured in the student's process, because nothing outside can time a GPU's
work. So the probe measures the same steps on the same GPU just before, and the student's figures
are compared with the probe's by their ratios. If the probe's own figures are implausible, the
exercise isn't judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.model.compare import show
from autograder.model.restrictions import Ban
from autograder.model.task import Answer, Case, Finding, Task
from peakmem.probes.lab04 import GPU_LAYERS

__all__ = ["gpu_tradeoff"]

Pairs = Sequence[tuple[float, float]]

_LENGTHS = [GPU_LAYERS, 8, 4, 1]  # the first keeps everything
_TIME_RATIO = 1.35  # a GPU's clock changes times by about ten percent between runs
_BYTES_RATIO = 1.15  # requested or allocated bytes, gradients kept or freed
_MOST_OVERHEAD = 0.45
_OFF = 10.0  # a step takes a tenth of a second; queueing it takes milliseconds


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    return dict.fromkeys(case.parts, _finding(answer.value))


def _finding(value: Any) -> Finding:
    if not isinstance(value, dict) or value.keys() != {"own", "student"}:
        return Finding(False, "The figures came back garbled.")
    own, student = value["own"], value["student"]
    if not _are_pairs(own) or not _falls(own):
        doubt = (
            "The grader's own measurements on this GPU are implausible, so it can't judge yours."
        )
        return Finding(False, doubt=doubt)
    if not _are_pairs(student):
        return Finding(False, f"Expected (seconds, peak_bytes), but got {show(student)}.")
    if (said := _difference(own, student)) is None:
        return Finding(True)
    mistakes = tuple(name for name, made in _EXPLAINS.items() if made(own, student))
    return Finding(False, said, mistakes)


def _are_pairs(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == len(_LENGTHS)
        and all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in value)
        and all(
            type(figure) in (int, float) and math.isfinite(figure) and figure > 0
            for pair in value
            for figure in pair
        )
    )


def _falls(own: Pairs) -> bool:
    """Keeping everything has the highest peak; recomputing takes longer, by less than half."""
    peaks = [peak for _, peak in own]
    seconds = [second for second, _ in own]
    return peaks[0] > max(peaks[1:]) and 0 <= min(seconds[1:]) / seconds[0] - 1 < _MOST_OVERHEAD


def _difference(own: Pairs, student: Pairs) -> str | None:
    for length, mine, theirs in zip(_LENGTHS, own, student, strict=True):
        if not _near(theirs[1], mine[1], _BYTES_RATIO):
            return (
                f"With segments of {length} the step peaks at {mine[1] / 2**30:.2f} GiB, but your "
                f"figure is {theirs[1] / 2**30:.2f} GiB."
            )
        if not _near(theirs[0], mine[0], _TIME_RATIO):
            return (
                f"With segments of {length} a step takes {mine[0] / own[0][0]:.2f} times what it "
                f"takes without checkpoints, {own[0][0] * 1000:.3g} ms; your "
                f"{theirs[0] * 1000:.3g} ms are {theirs[0] / own[0][0]:.2f} times that."
            )
    overhead = min(seconds for seconds, _ in student[1:]) / student[0][0] - 1
    if overhead >= _MOST_OVERHEAD:
        return (
            f"The fastest segment length takes {overhead:.0%} more time than a step without "
            "checkpoints."
        )
    return None


def _near(figure: float, expected: float, ratio: float) -> bool:
    return expected / ratio <= figure <= expected * ratio


# Each tells whether a mistake would have given these figures.


def _times(own: Pairs, student: Pairs) -> list[float]:
    return [theirs[0] / mine[0] for mine, theirs in zip(own, student, strict=True)]


def _not_synchronized(own: Pairs, student: Pairs) -> bool:
    return max(_times(own, student)) < 1 / _TIME_RATIO


def _milliseconds(own: Pairs, student: Pairs) -> bool:
    return all(_near(ratio, 1000, _TIME_RATIO) for ratio in _times(own, student))


def _gibibytes(own: Pairs, student: Pairs) -> bool:
    return all(theirs[1] < 1000 for theirs in student)


def _peak_not_reset(own: Pairs, student: Pairs) -> bool:
    highest = max(peak for _, peak in student)
    return highest >= own[0][1] / _BYTES_RATIO and all(
        _near(peak, highest, 1.02) for _, peak in student
    )


def _no_checkpoint(own: Pairs, student: Pairs) -> bool:
    alike = all(_near(seconds, student[0][0], 1.1) for seconds, _ in student)
    return alike and _peak_not_reset(own, student)


def _live_after(own: Pairs, student: Pairs) -> bool:
    return all(
        theirs[1] < mine[1] / _BYTES_RATIO for mine, theirs in zip(own, student, strict=True)
    )


def _first_step_too(own: Pairs, student: Pairs) -> bool:
    return max(_times(own, student)) > _TIME_RATIO


_EXPLAINS: dict[str, Callable[[Pairs, Pairs], bool]] = {
    "not_synchronized": _not_synchronized,
    "milliseconds": _milliseconds,
    "gibibytes": _gibibytes,
    "no_checkpoint": _no_checkpoint,
    "peak_not_reset": _peak_not_reset,
    "live_after": _live_after,
    "first_step_too": _first_step_too,
}


def _cases(rng: np.random.Generator) -> list[Case]:
    return [Case(("figures",), {"segment_lengths": _LENGTHS})]


gpu_tradeoff = Task(
    id="lab04-gpu_tradeoff",
    parts={"figures": 2},
    defines=("measure",),
    probe="gpu_tradeoff",
    cases=_cases,
    judge=_judge,
    trust="measured",
    needs_gpu=True,
    seconds=120.0,
    ban=Ban(allows=frozenset({"peakmem.meter", "torch.utils.benchmark"})),
    mistakes={
        "not_synchronized": "You timed queueing a step, not running it. Call "
        "torch.cuda.synchronize() before you read the clock, both times.",
        "milliseconds": "These are milliseconds (elapsed_time returns them). Divide by 1000.",
        "gibibytes": "Your peak is in GiB or MiB. Return bytes.",
        "no_checkpoint": "Neither your times nor your memory depend on the segment length. Run "
        "the layers through run_in_segments.",
        "peak_not_reset": "Your peak is the same for every segment length, because it is the "
        "whole process's peak. Call torch.cuda.reset_peak_memory_stats() before the step.",
        "live_after": "Your peak is too low. It comes during the step: read "
        "torch.cuda.max_memory_allocated(), not memory_allocated().",
        "first_step_too": "Your steps take too long. Run two steps before you time one, and build "
        "the stack before the clock starts.",
    },
    stretch=True,
)
