"""Probe of lab 6's Adam, whose moments wait on a host."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from peakmem.execute.host_memory import HostTier
from peakmem.measure import meter
from peakmem.probes import Namespace, earlier_objects_set_aside
from peakmem.probes.arrays import arrays_of
from peakmem.probes.lab03 import gradients_of, kept_by_python, large_tensors, sums_of_pieces
from peakmem.probes.lab03.adam import report_of
from peakmem.probes.own_work import refusing_optimizers

__all__ = ["offloaded_adam"]

Array = npt.NDArray[Any]


def offloaded_adam(
    student: Namespace,
    models: Sequence[Mapping[str, Any]] | None = None,
    large: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    metered: bool = True,
) -> Any:
    """Train with the student's `OffloadedAdam`: small `models`, or `large` vectors.

    Models have the form of lab 3's `adam_step` probe; each has its own host, and they take turns.
    Returns one dict per model. `parameters` has an array for each parameter, whose rows are its
    values after each call. `changed` names the first object that a call changed but shouldn't have;
    None if there is none. `state_used` says whether anything is on the host at the end, and
    `host_bytes` how many bytes.

    `large` has the form of lab 3's `lean_adam_step` probe, plus `skipped` as models have it.
    Returns `models`, the single model's watched values in the form above; `live_bytes`, the host's
    bytes before the first step and after each step; and `cleared`, whether zero_grad() left no
    gradient. If `metered`, there are also `rise_bytes` and `numpy_rise_bytes`, the device's peak
    beyond parameters and gradients since before the optimizer was created, and `kept_bytes`, the
    most that remained after any step. If `even`, there are also `spread`, the largest difference
    between two values of one parameter at the end, and `numpy_kept_bytes`, what a second training
    run leaves in numpy's and Python's memory.
    """
    if large is None:
        return _train(student.OffloadedAdam, models or [], options or {})
    small = {**large, "shapes": [[3], [2]], "watched": [[0]] * 2, "skipped": []}
    with refusing_optimizers():
        _large_steps(student.OffloadedAdam, options or {}, metered=False, **small)  # warm-up
    return _large_steps(student.OffloadedAdam, options or {}, metered=metered, **large)


@torch.enable_grad()  # restores the mode at the end, whatever a step switches off
@refusing_optimizers()
def _train(
    make: Callable[..., Any], models: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    runs = [_AdamRun(make, model, options) for model in models]
    for number in range(max(len(model["gradients"][0]) for model in models)):
        for run in runs:
            run.call(number)
    return [run.report() for run in runs]


class _AdamRun:
    """One model, its host and optimizer, and its parameters after each step."""

    def __init__(
        self, make: Callable[..., Any], model: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        self.model = model
        self.parameters = [torch.tensor(a, requires_grad=True) for a in model["parameters"]]
        self.host = HostTier()
        # A generator, like model.parameters().
        self.optimizer = make(iter(self.parameters), self.host, **options)
        self.noted: list[list[Array]] = []
        self.changed: str | None = None

    def call(self, number: int) -> None:
        arrays = gradients_of(self.model, number)
        given = [None if array is None else torch.tensor(array) for array in arrays]
        for parameter, row in zip(self.parameters, given, strict=True):
            parameter.grad = None if row is None else row.clone()
        self.optimizer.step()
        for parameter, row in zip(self.parameters, given, strict=True):
            if row is None or ((g := parameter.grad) is not None and torch.equal(g, row)):
                continue
            self.changed = self.changed or "gradients"
        if not torch.is_grad_enabled():
            self.changed = self.changed or "grad_mode"
        self.noted.append(arrays_of(self.parameters))

    def report(self) -> dict[str, Any]:
        report = report_of(self.noted, self.changed, self.host.bytes_out)
        return {**report, "host_bytes": self.host.live_bytes}


def _large_steps(
    make: Callable[..., Any], options: Mapping[str, Any], *, metered: bool, **large: Any
) -> dict[str, Any]:
    run = _LargeRun(make, options, **large)
    if not metered:
        run.train()
        return run.report()
    figures = _metered(run)
    if run.even:
        again = _LargeRun(make, options, **large)
        with earlier_objects_set_aside():
            figures["numpy_kept_bytes"] = kept_by_python(again.train)
    return {**run.report(), **figures}


class _LargeRun:
    """Large parameters, their gradients and host, and the figures observed after each step."""

    def __init__(
        self,
        make: Callable[..., Any],
        options: Mapping[str, Any],
        shapes: Sequence[Sequence[int]],
        seed: int,
        factors: Sequence[float],
        watched: Sequence[Array],
        skipped: Sequence[Sequence[int]] = (),
        even: bool = False,
    ) -> None:
        self._make, self._options = make, options
        self._factors, self._watched = factors, watched
        self._skipped = {tuple(pair) for pair in skipped}
        self.even = even
        self._arrays, self._gradient_arrays = large_tensors(shapes, seed, even)
        self.parameters = [torch.from_numpy(array).requires_grad_() for array in self._arrays]
        self.gradients = [torch.from_numpy(array) for array in self._gradient_arrays]
        self._host = HostTier()
        self._optimizer: Any = None
        self._live_bytes: list[int] = []
        self._noted: list[list[Array]] = []
        self._changed: str | None = None

    def train(self, after_step: Callable[[], object] = lambda: None) -> None:
        """Create the optimizer, and step with the gradients times each factor in turn."""
        self._optimizer = self._make(self.parameters, self._host, **self._options)
        self._live_bytes.append(self._host.live_bytes)
        for number, factor in enumerate(self._factors):
            for i, gradient in enumerate(self.gradients):
                gradient.mul_(factor)
                self.parameters[i].grad = None if (number, i) in self._skipped else gradient
            before = self._gradient_sums()
            self._optimizer.step()
            if not all(map(np.array_equal, before, self._gradient_sums())):
                self._changed = "gradients"
            self._live_bytes.append(self._host.live_bytes)
            pairs = zip(self._arrays, self._watched, strict=True)
            self._noted.append([array[where] for array, where in pairs])
            after_step()

    def report(self) -> dict[str, Any]:
        self._optimizer.zero_grad()
        left = [parameter.grad for parameter in self.parameters]
        report = {
            "models": [report_of(self._noted, self._changed, self._live_bytes[-1])],
            "live_bytes": self._live_bytes,
            "cleared": all(grad is None for grad in left),
        }
        spread = max(float(array.max() - array.min()) for array in self._arrays)
        return {**report, "spread": spread} if self.even else report

    def _gradient_sums(self) -> list[Array]:
        return [sums_of_pieces(array) for array in self._gradient_arrays]


def _metered(run: _LargeRun) -> dict[str, Any]:
    """Train; return the peak beyond parameters and gradients, and the most bytes left by a step."""
    meter_ = meter.MemoryMeter("cpu", count_numpy=True, history=False)
    kept = []

    def note() -> None:
        gc.collect()
        kept.append(meter_.live_bytes - meter_.baseline_bytes)

    with earlier_objects_set_aside(), meter_.track(run.parameters, run.gradients) as measured:
        run.train(after_step=note)
    return {
        "rise_bytes": measured.rise_bytes,
        "numpy_rise_bytes": measured.numpy_peak_bytes,
        "kept_bytes": max(kept),
    }
