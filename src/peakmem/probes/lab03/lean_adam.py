"""Probe of lab 3's Adam without temporaries, on tensors large enough to measure."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from peakmem.measure import meter
from peakmem.probes import Namespace, earlier_objects_set_aside
from peakmem.probes.lab03.adam import Step, report_of, train_in_turns
from peakmem.probes.own_work import refusing_optimizers

__all__ = ["kept_by_python", "large_tensors", "lean_adam_step", "pieces_of", "sums_of_pieces"]

Array = npt.NDArray[Any]


@torch.enable_grad()
def lean_adam_step(
    student: Namespace,
    models: Sequence[Mapping[str, Any]] | None = None,
    large: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    metered: bool = True,
) -> Any:
    """Train with the student's `lean_adam_step`: small `models`, as `adam_step` does, or `large`.

    `large` has `shapes`, `seed` (for `large_tensors`), `factors` (each call's gradients are the
    previous call's times its factor; the first factor is 1) and `watched` (for each parameter, the
    flat positions of the values to return). If `even`, all values of a tensor equal its first.

    Returns a dict for `large`: `models` has the single model's watched values in the form above,
    and `changed` names an object that a call changed but shouldn't have; `sums` has
    `sums_of_pieces` for each parameter after the last call. If `even`, `spread` is the largest
    difference between two values of one parameter at the end. If `metered`, there are also
    `rise_bytes` and `numpy_rise_bytes`, the meter's peaks over all calls beyond parameters and
    gradients, and `kept_bytes` and `numpy_kept_bytes`, the bytes still live after the last call.
    """
    if large is None:
        return train_in_turns(student.lean_adam_step, models or [], options or {})
    return _large(student.lean_adam_step, options or {}, metered=metered, **large)


def large_tensors(
    shapes: Sequence[Sequence[int]], seed: int, even: bool = False
) -> tuple[list[Array], list[Array]]:
    """Return float32 parameters and gradients of these shapes, the same for the same seed.

    If `even`, all values of a tensor are equal.
    """
    rng = np.random.default_rng(seed)

    def draw() -> list[Array]:
        drawn = [rng.random(tuple(shape), dtype=np.float32) for shape in shapes]
        for array in drawn:
            array -= np.float32(0.5)  # in place: a budget has no room for a copy
            if even:
                array[...] = array.flat[0]
        return drawn

    return draw(), draw()


def pieces_of(array: Array) -> list[Array]:
    """Return views of an array's values, with up to 65,536 values in each."""
    return np.split(array.reshape(-1), range(2**16, array.size, 2**16))


def sums_of_pieces(array: Array) -> Array:
    """Return the sum of each of an array's pieces in float64, so that every value counts."""
    return np.array([piece.sum(dtype=np.float64) for piece in pieces_of(array)])


class _LargeRun:
    """Takes steps on large tensors, and records the values at the watched positions."""

    def __init__(
        self,
        step: Step,
        options: Mapping[str, Any],
        shapes: Sequence[Sequence[int]],
        seed: int,
        factors: Sequence[float],
        watched: Sequence[Array],
        even: bool = False,
    ) -> None:
        self._step, self._options = step, options
        self._factors, self._watched, self._even = factors, watched, even
        self._arrays, self._gradient_arrays = large_tensors(shapes, seed, even)
        self.parameters = [torch.from_numpy(array).requires_grad_() for array in self._arrays]
        self.gradients = [torch.from_numpy(array) for array in self._gradient_arrays]
        self._state: dict[Any, Any] = {}
        self._noted: list[list[Array]] = []
        self._changed: str | None = None

    def train(self) -> None:
        for factor in self._factors:
            for gradient in self.gradients:
                gradient.mul_(factor)
            before = _at(self._watched, self._gradient_arrays)
            self._step(self.parameters, self.gradients, self._state, **self._options)
            self._noted.append(_at(self._watched, self._arrays))
            if not all(map(np.array_equal, before, _at(self._watched, self._gradient_arrays))):
                self._changed = "gradients"

    def report(self) -> dict[str, Any]:
        report = {
            "models": [report_of(self._noted, self._changed, self._state)],
            "sums": [sums_of_pieces(array) for array in self._arrays],
        }
        spread = max(float(array.max() - array.min()) for array in self._arrays)
        return {**report, "spread": spread} if self._even else report


def _large(
    step: Step, options: Mapping[str, Any], *, metered: bool, **large: Any
) -> dict[str, Any]:
    _warm_up(step, len(large["factors"]))
    run = _LargeRun(step, options, **large)
    if not metered:
        run.train()
        return run.report()
    meter_ = meter.MemoryMeter("cpu", count_numpy=True, history=False)
    with earlier_objects_set_aside(), meter_.track(run.parameters, run.gradients) as measured:
        run.train()
        gc.collect()
    return {
        **run.report(),
        "rise_bytes": measured.rise_bytes,
        "numpy_rise_bytes": measured.numpy_peak_bytes,
        "kept_bytes": measured.live_bytes - measured.baseline_bytes,
        "numpy_kept_bytes": kept_by_python(_LargeRun(step, options, **large).train),
    }


def kept_by_python(train: Callable[[], object]) -> int:
    """Return numpy's and Python's live bytes after training, in a separate run.

    The run is separate because tracing is slow. Blocks of up to 512 bytes don't count, because
    hundreds of Python's small objects come and go.
    """
    tracemalloc.start()
    try:
        train()
        gc.collect()
        snapshot = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    return sum(trace.size for trace in snapshot.traces if trace.size > 512)


def _at(watched: Sequence[Array], arrays: Sequence[Array]) -> list[Array]:
    """Return the watched values of some arrays; each array shares memory with a tensor."""
    pairs = zip(arrays, watched, strict=True)
    return [array.reshape(-1)[where] for array, where in pairs]


@refusing_optimizers()
def _warm_up(step: Step, calls: int) -> None:
    """Make the same calls on tiny tensors, so that imports, caches and code pages are loaded.

    These aren't part of an optimizer step's cost, but a budget and the meter would count them.
    """
    parameters = [torch.zeros(shape, requires_grad=True) for shape in ((3,), (2, 2))]
    gradients = [torch.ones(shape) for shape in ((3,), (2, 2))]
    state: dict[Any, Any] = {}
    with meter.MemoryMeter("cpu", count_numpy=True, history=False).track(parameters, gradients):
        for _ in range(calls):
            step(parameters, gradients, state)
