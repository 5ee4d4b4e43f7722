"""Probe of lab 3's Adam: small models that take turns, recorded after every call."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from peakmem.probes import Namespace
from peakmem.probes.arrays import arrays_of
from peakmem.probes.own_work import refusing_optimizers

__all__ = ["Step", "adam_step", "gradients_of", "report_of", "train_in_turns"]

Array = npt.NDArray[Any]
Step = Callable[..., object]


def adam_step(
    student: Namespace, models: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Train a few parameters with the student's `adam_step`, and record them after every call.

    Each model has `parameters` (arrays), `layouts` (see `_leaf`), `gradients` (for each parameter,
    an array with one row per call) and `skipped` (pairs of a call and a parameter whose gradient is
    None in that call). `options` are passed on. The models take turns, each with its own state: all
    make their first call before any makes its second.

    Returns one dict per model. `parameters` has an array for each parameter, whose rows are its
    values after each call. `changed` names the first thing that a call changed but shouldn't have,
    such as "grad_mode"; None if there is none. `state_used` says whether the state is non-empty at
    the end. The first model's dict has `stands`: whether one more call, with an lr of 0, leaves the
    parameters unchanged. If there are several models, it also has `restarts`: whether the same
    parameters, reset to their start, take the same path again with two new states in turns, and
    begin the same path once more after one of these states is emptied.
    """
    return train_in_turns(student.adam_step, models, options)


def gradients_of(model: Mapping[str, Any], call: int) -> list[Array | None]:
    """Return the parameters' gradients in one call: an array for each, or None."""
    skipped = {tuple(pair) for pair in model["skipped"]}
    rows = [gradients[call] for gradients in model["gradients"]]
    return [None if (call, i) in skipped else row for i, row in enumerate(rows)]


@torch.enable_grad()  # restores the mode at the end, whatever a step switches off
@refusing_optimizers()
def train_in_turns(
    step: Step, models: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Train the models in turns with a step; return a report for each."""
    runs = [_Run(model) for model in models]
    for number in range(max(run.calls for run in runs)):
        for run in runs:
            run.call(step, number, options)
    reports = [run.report() for run in runs]
    reports[0]["stands"] = runs[0].stands(step, options)
    if len(runs) > 1:
        reports[0]["restarts"] = runs[0].restarts(step, options)
    return reports


class _Run:
    """One model, its state, and its parameters after each call."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        pairs = zip(model["parameters"], model["layouts"], strict=True)
        self.parameters = [_leaf(array, layout) for array, layout in pairs]
        self.model = model
        self.calls = len(model["gradients"][0])
        self.state: dict[Any, Any] = {}
        self.noted: list[list[Array]] = []
        self.changed: str | None = None

    def call(self, step: Step, number: int, options: Mapping[str, Any]) -> None:
        """Make call `number` if this model has that many calls."""
        if number >= self.calls:
            return
        arrays = gradients_of(self.model, number)
        gradients = [None if a is None else torch.tensor(a) for a in arrays]
        given = (list(self.parameters), list(gradients))
        step(*given, self.state, **options)
        self.noted.append(arrays_of(self.parameters))
        if self.changed is None:
            self.changed = self._change(given, gradients, arrays)

    def report(self) -> dict[str, Any]:
        return report_of(self.noted, self.changed, self.state)

    def stands(self, step: Step, options: Mapping[str, Any]) -> bool:
        """Make the last call again with an lr of 0; return whether no parameter moves."""
        before = [p.detach().clone() for p in self.parameters]
        arrays = gradients_of(self.model, self.calls - 1)
        gradients = [None if a is None else torch.tensor(a) for a in arrays]
        step(list(self.parameters), gradients, self.state, **{**options, "lr": 0.0})
        return all(map(torch.equal, self.parameters, before))

    def restarts(self, step: Step, options: Mapping[str, Any]) -> bool:
        """Train the same parameters again from their start, with two new states that take turns.

        Returns whether the results are the same with each state, and in two more calls with an
        emptied state. They differ if the step keeps something elsewhere, such as on the parameters,
        or in a global under the state's id().
        """
        path = list(itertools.pairwise([self._start(), *self.noted]))
        states: tuple[dict[Any, Any], ...] = ({}, {})
        for states_in_turn, steps in ((states, path), (states[:1], path[:2])):
            states[0].clear()
            for number, (start, end) in enumerate(steps):
                for self.state in states_in_turn:
                    self._put_back(start)
                    self.call(step, number, options)
                    if not all(map(np.allclose, self.noted[-1], end)):
                        return False
        return True

    def _start(self) -> list[Array]:
        return list(self.model["parameters"])

    @torch.no_grad()
    def _put_back(self, arrays: list[Array]) -> None:
        for parameter, array in zip(self.parameters, arrays, strict=True):
            parameter.copy_(torch.tensor(array))

    def _change(
        self,
        given: tuple[list[Any], list[Any]],
        gradients: list[torch.Tensor | None],
        arrays: Sequence[Array | None],
    ) -> str | None:
        for gradient, array in zip(gradients, arrays, strict=True):
            if gradient is None or array is None:
                continue
            if not np.array_equal(gradient.numpy(), array):
                return "gradients"
        if not (_same_objects(given[0], self.parameters) and _same_objects(given[1], gradients)):
            return "lists"
        if not all(p.requires_grad and p.is_leaf for p in self.parameters):
            return "requires_grad"
        return None if torch.is_grad_enabled() else "grad_mode"


def report_of(noted: list[list[Array]], changed: str | None, state: object) -> dict[str, Any]:
    """Return a model's report, in the form that `adam_step` returns."""
    by_parameter = [np.stack(rows) for rows in zip(*noted, strict=True)]
    return {"parameters": by_parameter, "changed": changed, "state_used": bool(state)}


def _same_objects(a: Sequence[object], b: Sequence[object]) -> bool:
    return list(map(id, a)) == list(map(id, b))


def _leaf(array: Array, layout: str) -> torch.Tensor:
    """A parameter with the array's values and a "contiguous", "transposed" or "strided" layout."""
    if layout == "transposed":
        tensor = torch.tensor(array.T.copy()).T
    elif layout == "strided":  # every second value of a longer row
        tensor = torch.zeros(*array.shape[:-1], 2 * array.shape[-1], dtype=torch.float64)[..., ::2]
        tensor.copy_(torch.tensor(array))
    else:
        tensor = torch.tensor(array)
    return tensor.requires_grad_()
