"""The measured call of a "find the leak" exercise: the fixed function's results and its peak."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from typing import Any

from peakmem.probes import Namespace
from peakmem.probes.metering import with_rises

__all__ = ["leaking", "measured_run"]

Work = Callable[..., Any]


def leaking(work: Work, name: str, **warm_up: int) -> Callable[..., dict[str, Any]]:
    """Return a probe that measures `work` on the student's function of this name."""

    def probe(student: Namespace, metered: bool = True, **sizes: int) -> dict[str, Any]:
        return measured_run(work, getattr(student, name), sizes, warm_up, metered=metered)

    return probe


def measured_run(
    work: Work,
    function: Callable[..., Any],
    sizes: Mapping[str, Any],
    warm_up: Mapping[str, Any] | None = None,
    *,
    metered: bool,
) -> dict[str, Any]:
    """Return the `results` of `work(function, **sizes)`, and its peak if `metered`.

    `work` makes its inputs from the sizes, calls the student's function on them, and returns plain
    data. With `warm_up`, it first runs once with these sizes replaced, so that imports and first
    uses of libraries don't count. The peak is `rise_bytes` of tensors and `numpy_rise_bytes`,
    including the inputs.
    """
    if warm_up is not None:
        work(function, **{**sizes, **warm_up})
        gc.collect(1)
    return with_rises(lambda: {"results": work(function, **sizes)}, metered=metered)
