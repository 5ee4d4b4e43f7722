"""GPU exercise: copies that hide behind compute.

Seconds are measured in the student's process, as in lab 7's GPU exercise: the probe times compute
and copies separately on the same GPU just before, and the student's time is compared with these. If
the probe's own figures are faster than any link, the exercise isn't judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.model.restrictions import Ban
from autograder.model.task import Answer, Case, Finding, Task
from peakmem.probes.lab06 import COPY_BYTES

__all__ = ["gpu_overlap"]

_RATIO = 1.15
_ONE_AFTER_THE_OTHER = 0.9  # as a fraction of the sum of both
_FASTEST_LINK = 2e12  # bytes per second; NVLink-C2C has 0.45e12 in one direction
_SECONDS = ("compute", "copies", "student")


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    return {"overlap": _finding(answer.value)}


def _finding(value: Any) -> Finding:
    if not isinstance(value, dict) or value.keys() != {*_SECONDS, "computed", "copied"}:
        return Finding(False, "The figures came back garbled.")
    if not all(_is_time(value[name]) for name in _SECONDS):
        return Finding(False, doubt=_DOUBT)
    compute, copies, student = (value[name] for name in _SECONDS)
    if COPY_BYTES / copies > _FASTEST_LINK:
        return Finding(False, doubt=_DOUBT)
    if value["computed"] is not True:
        said = "Call compute() exactly once; it must be finished after synchronize()."
        return Finding(False, said, ("compute_left_out",))
    if value["copied"] is not True:
        return Finding(False, "", ("copies_left_out",))
    if student <= _RATIO * max(compute, copies):
        return Finding(True)
    serial = student >= _ONE_AFTER_THE_OTHER * (compute + copies)
    said = (
        f"Alone, compute takes {compute * 1000:.1f} ms and the copies {copies * 1000:.1f} ms; both "
        f"together take {student * 1000:.1f} ms with your function, and at most "
        f"{_RATIO * max(compute, copies) * 1000:.1f} ms earn the points."
    )
    return Finding(False, said, ("one_after_the_other",) if serial else ())


def _is_time(seconds: Any) -> bool:
    return type(seconds) is float and math.isfinite(seconds) and seconds > 0


_DOUBT = "The grader's own times on this GPU are implausible, so it can't judge yours."


def _cases(rng: np.random.Generator) -> list[Case]:
    return [Case(("overlap",), {})]


gpu_overlap = Task(
    id="lab06-gpu_overlap",
    parts={"overlap": 2},
    defines=("overlapped",),
    probe="gpu_overlap",
    stretch=True,
    cases=_cases,
    judge=_judge,
    trust="measured",
    needs_gpu=True,
    seconds=60.0,
    ban=Ban(allows=frozenset({"threading"})),
    mistakes={
        "compute_left_out": "Call compute() once.",
        "copies_left_out": "Not all targets hold their sources' values. Copy every pair: "
        "target.copy_(source, non_blocking=True).",
        "one_after_the_other": "Compute and copies run one after the other. Copy on your own "
        "torch.cuda.Stream, with non_blocking=True, and don't wait between the copies and "
        "compute().",
    },
)
