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
from peakmem.probes.lab03 import large_tensors

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
    Returns one dict per model. `parameters` has for each parameter an array with one row per call,
    its values after the call. `changed` names the first object that a call changed but shouldn't
    have; None if there is none. `state_used` says whether anything is on the host.

    `large` has the form of lab 3's `lean_adam_step` probe. Returns `models`, the one model's
    watched values in the form above; `live_bytes`, the host's bytes before the first step and after
    each step; and `cleared`, whether zero_grad() left only zero gradients. If `metered`, also
    `rise_bytes` and `numpy_rise_bytes`, the device's peak beyond parameters and gradients since
    before the optimizer was made, and `kept_bytes`, the bytes left of it at the end.
    """
    if large is None:
        return _train(student.OffloadedAdam, models or [], options or {})
    small = {**large, "shapes": [[3], [2]], "watched": [np.arange(3), np.arange(2)]}
    _large_steps(student.OffloadedAdam, options or {}, metered=False, **small)  # fills caches
    return _large_steps(student.OffloadedAdam, options or {}, metered=metered, **large)


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
        skipped = {tuple(pair) for pair in self.model["skipped"]}
        given = []
        for i, parameter in enumerate(self.parameters):
            array = self.model["gradients"][i][number]
            row = None if (number, i) in skipped else torch.tensor(array)
            parameter.grad = None if row is None else row.clone()
            given.append(row)
        self.optimizer.step()
        for parameter, row in zip(self.parameters, given, strict=True):
            if row is None or ((g := parameter.grad) is not None and torch.equal(g, row)):
                continue
            self.changed = self.changed or "gradients"
        self.noted.append([p.detach().numpy().copy() for p in self.parameters])

    def report(self) -> dict[str, Any]:
        by_parameter = [np.stack(rows) for rows in zip(*self.noted, strict=True)]
        used = self.host.bytes_out > 0
        return {"parameters": by_parameter, "changed": self.changed, "state_used": used}


def _large_steps(
    make: Callable[..., Any],
    options: Mapping[str, Any],
    shapes: Sequence[Sequence[int]],
    seed: int,
    factors: Sequence[float],
    watched: Sequence[Array],
    *,
    metered: bool,
) -> dict[str, Any]:
    run = _LargeRun(shapes, seed, watched)
    figures: dict[str, Any] = {}
    if metered:
        figures = _metered(lambda: run.train(make, options, factors), run.parameters, run.gradients)
    else:
        run.train(make, options, factors)
    return {**run.report(), **figures}


class _LargeRun:
    """Large parameters, their gradients and host, and what was seen of them after each step."""

    def __init__(
        self, shapes: Sequence[Sequence[int]], seed: int, watched: Sequence[Array]
    ) -> None:
        self.arrays, self.gradient_arrays = large_tensors(shapes, seed)
        self.parameters = [torch.from_numpy(array).requires_grad_() for array in self.arrays]
        self.gradients = [torch.from_numpy(array) for array in self.gradient_arrays]
        self.watched = watched
        self.host = HostTier()
        self.optimizer: Any = None
        self.live_bytes: list[int] = []
        self.noted: list[list[Array]] = []
        self.changed: str | None = None

    def train(
        self, make: Callable[..., Any], options: Mapping[str, Any], factors: Sequence[float]
    ) -> None:
        """Make the optimizer, and step with the gradients times each factor in turn."""
        self.optimizer = make(self.parameters, self.host, **options)
        self.live_bytes.append(self.host.live_bytes)
        for factor in factors:
            for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
                parameter.grad = gradient.mul_(factor)
            before = _at(self.watched, self.gradient_arrays)
            self.optimizer.step()
            if not all(map(np.array_equal, before, _at(self.watched, self.gradient_arrays))):
                self.changed = "gradients"
            self.live_bytes.append(self.host.live_bytes)
            self.noted.append(_at(self.watched, self.arrays))

    def report(self) -> dict[str, Any]:
        self.optimizer.zero_grad()
        left = [parameter.grad for parameter in self.parameters]
        model = {
            "parameters": [np.stack(rows) for rows in zip(*self.noted, strict=True)],
            "changed": self.changed,
            "state_used": self.live_bytes[-1] > 0,
        }
        return {
            "models": [model],
            "live_bytes": self.live_bytes,
            "cleared": all(grad is None or not grad.any() for grad in left),
        }


def _metered(train: Callable[[], None], *tensors: Sequence[torch.Tensor]) -> dict[str, Any]:
    """Run a training; return its peak beyond the tensors, and the bytes it left."""
    meter_ = meter.MemoryMeter("cpu", count_numpy=True, history=False).track(*tensors)
    with earlier_objects_set_aside(), meter_ as measured:
        train()
        gc.collect()
    return {
        "rise_bytes": measured.peak_bytes - measured.baseline_bytes,
        "numpy_rise_bytes": measured.numpy_peak_bytes,
        "kept_bytes": measured.live_bytes - measured.baseline_bytes,
    }


def _at(watched: Sequence[Array], arrays: Sequence[Array]) -> list[Array]:
    """Return the watched values of some arrays."""
    return [array[where] for array, where in zip(arrays, watched, strict=True)]
