"""Adam by torch, the reference for every answer, and Adam with each common mistake.

A model here is the input of `peakmem.probes.lab03.adam_step`: initial parameters and gradients.
A path is the result: all parameters after each call. A mutant computes its path call by call, so it
can stop as soon as the path differs from another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.optim.adam import adam as torch_adam

from peakmem.probes.lab03 import gradients_of

__all__ = ["MUTANTS", "Model", "Mutant", "Path", "calls_of", "corrections_off", "torch_paths"]

Array = npt.NDArray[np.float64]
Model = Mapping[str, Any]
Path = list[list[Array]]
Walk = Iterator[list[Array]]


def calls_of(model: Model) -> int:
    """Return the number of calls that a model has gradients for."""
    return len(model["gradients"][0])


def torch_paths(models: Sequence[Model], options: Mapping[str, Any]) -> list[Path]:
    """Return the path of each model under torch's own Adam, in float64."""
    return [_torch_path(model, **options) for model in models]


def _torch_path(
    model: Model,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> Path:
    # torch.optim.Adam's step calls this function; the class itself would import torch._dynamo.
    parameters = [torch.tensor(array, dtype=torch.float64) for array in model["parameters"]]
    states = [(torch.zeros_like(p), torch.zeros_like(p), torch.tensor(0.0)) for p in parameters]
    path = []
    for call in range(calls_of(model)):
        gradients = {i: g for i, g in enumerate(gradients_of(model, call)) if g is not None}
        there = list(gradients)
        torch_adam(
            [parameters[i] for i in there],
            [torch.tensor(gradient, dtype=torch.float64) for gradient in gradients.values()],
            [states[i][0] for i in there],
            [states[i][1] for i in there],
            [],
            [states[i][2] for i in there],
            foreach=False,
            amsgrad=False,
            beta1=betas[0],
            beta2=betas[1],
            lr=lr,
            weight_decay=0.0,
            eps=eps,
            maximize=False,
        )
        path.append([p.numpy().copy() for p in parameters])
    return path


@dataclass
class _Moments:
    """One parameter's state."""

    first: Array
    second: Array
    steps: int = 0


@dataclass(frozen=True)
class _Options:
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8


Update = Callable[[Array, _Moments, _Options], Array]


def _moved(gradient: Array, own: _Moments, o: _Options, correction: int | None = None) -> Array:
    """Take one correct step: update the moments, and return what to subtract from the parameter."""
    own.first = o.betas[0] * own.first + (1 - o.betas[0]) * gradient
    own.second = o.betas[1] * own.second + (1 - o.betas[1]) * gradient**2
    t = own.steps if correction is None else correction
    first = own.first / (1 - o.betas[0] ** t)
    second = own.second / (1 - o.betas[1] ** t)
    return o.lr * first / (np.sqrt(second) + o.eps)


def _no_bias_correction(gradient: Array, own: _Moments, o: _Options) -> Array:
    _moved(gradient, own, o)
    return o.lr * own.first / (np.sqrt(own.second) + o.eps)


def _eps_inside_the_root(gradient: Array, own: _Moments, o: _Options) -> Array:
    _moved(gradient, own, o)
    first = own.first / (1 - o.betas[0] ** own.steps)
    return o.lr * first / np.sqrt(own.second / (1 - o.betas[1] ** own.steps) + o.eps)


def _eps_before_the_correction(gradient: Array, own: _Moments, o: _Options) -> Array:
    _moved(gradient, own, o)
    rate = o.lr * math.sqrt(1 - o.betas[1] ** own.steps) / (1 - o.betas[0] ** own.steps)
    return rate * own.first / (np.sqrt(own.second) + o.eps)


def _no_root(gradient: Array, own: _Moments, o: _Options) -> Array:
    _moved(gradient, own, o)
    second = own.second / (1 - o.betas[1] ** own.steps)
    return o.lr * own.first / (1 - o.betas[0] ** own.steps) / (second + o.eps)


def _betas_swapped(gradient: Array, own: _Moments, o: _Options) -> Array:
    return _moved(gradient, own, _Options(o.lr, (o.betas[1], o.betas[0]), o.eps))


def _betas_ignored(gradient: Array, own: _Moments, o: _Options) -> Array:
    return _moved(gradient, own, _Options(o.lr, eps=o.eps))


def _weights_swapped(gradient: Array, own: _Moments, o: _Options) -> Array:
    own.first = (1 - o.betas[0]) * own.first + o.betas[0] * gradient
    own.second = (1 - o.betas[1]) * own.second + o.betas[1] * gradient**2
    first = own.first / (1 - o.betas[0] ** own.steps)
    return o.lr * first / (np.sqrt(own.second / (1 - o.betas[1] ** own.steps)) + o.eps)


def _second_not_squared(gradient: Array, own: _Moments, o: _Options) -> Array:
    own.first = o.betas[0] * own.first + (1 - o.betas[0]) * gradient
    own.second = o.betas[1] * own.second + (1 - o.betas[1]) * np.abs(gradient)
    first = own.first / (1 - o.betas[0] ** own.steps)
    return o.lr * first / (np.sqrt(own.second / (1 - o.betas[1] ** own.steps)) + o.eps)


def _corrected_moments_kept(gradient: Array, own: _Moments, o: _Options) -> Array:
    moved = _moved(gradient, own, o)
    own.first = own.first / (1 - o.betas[0] ** own.steps)
    own.second = own.second / (1 - o.betas[1] ** own.steps)
    return moved


def _count_one_ahead(gradient: Array, own: _Moments, o: _Options) -> Array:
    return _moved(gradient, own, o, own.steps + 1)


def _count_stays_one(gradient: Array, own: _Moments, o: _Options) -> Array:
    return _moved(gradient, own, o, 1)


def _starts_anew(gradient: Array, own: _Moments, o: _Options) -> Array:
    return _moved(gradient, _Moments(np.zeros_like(gradient), np.zeros_like(gradient), 1), o)


def _wrong_sign(gradient: Array, own: _Moments, o: _Options) -> Array:
    return -_moved(gradient, own, o)


def _walk(
    models: Sequence[Model],
    options: Mapping[str, Any],
    update: Update = _moved,
    *,
    count: str = "own",
    none: str = "skip",
) -> list[Walk]:
    """Return the models' paths under `update`.

    `none` is the effect of a gradient of None: "skip" the parameter, skip the whole "call", count
    as "zero", or "stop" there.
    `count` is what the bias correction counts: the parameter's "own" steps, all "calls", or the
    "updates" of all parameters together.
    """
    return [_walk_one(model, _Options(**options), update, count, none) for model in models]


def _walk_one(model: Model, o: _Options, update: Update, count: str, none: str) -> Walk:
    values = [np.array(array, dtype=np.float64) for array in model["parameters"]]
    moments = [_Moments(np.zeros_like(value), np.zeros_like(value)) for value in values]
    counted = 0
    for call in range(calls_of(model)):
        counted += count == "calls"
        if none == "call" and any(gradient is None for gradient in gradients_of(model, call)):
            yield list(values)
            continue
        for i, gradient in enumerate(gradients_of(model, call)):
            if gradient is None and none == "stop":
                break
            if gradient is None and none == "skip":
                continue
            g = np.zeros_like(values[i]) if gradient is None else np.asarray(gradient)
            counted += count == "updates"
            moments[i].steps = moments[i].steps + 1 if count == "own" else counted
            values[i] = values[i] - update(g, moments[i], o)
        yield list(values)


Mutant = Callable[[Sequence[Model], Mapping[str, Any]], list[Walk]]


def _with(update: Update = _moved, **how: Any) -> Mutant:
    return lambda models, options: _walk(models, options, update, **how)


MUTANTS: dict[str, Mutant] = {
    "no_bias_correction": _with(_no_bias_correction),
    "eps_inside_the_root": _with(_eps_inside_the_root),
    "eps_before_the_correction": _with(_eps_before_the_correction),
    "one_count_for_all": _with(count="calls"),
    "counts_every_parameter": _with(count="updates"),
    "count_one_ahead": _with(_count_one_ahead),
    "count_stays_one": _with(_count_stays_one),
    "none_as_zero": _with(none="zero"),
    "stops_at_none": _with(none="stop"),
    "skips_the_call": _with(none="call"),
    "betas_swapped": _with(_betas_swapped),
    "betas_ignored": _with(_betas_ignored),
    "weights_swapped": _with(_weights_swapped),
    "no_root": _with(_no_root),
    "second_not_squared": _with(_second_not_squared),
    "corrected_moments_kept": _with(_corrected_moments_kept),
    "sign": _with(_wrong_sign),
    "starts_anew": _with(_starts_anew),
}


def corrections_off(
    models: Sequence[Model], options: Mapping[str, Any], got: Sequence[Path], tolerance: float
) -> bool:
    """Tell whether each move is Adam's except for one pair of bias corrections per tensor and call.

    This identifies corrections that a low-precision step count makes inexact, however the formula
    is arranged. `tolerance` is a fraction of the move.
    """
    o = _Options(**options)
    return all(
        left <= tolerance
        for model, path in zip(models, got, strict=True)
        for left in _left_unexplained(model, o, path)
    )


def _left_unexplained(model: Model, o: _Options, path: Path) -> Iterator[float]:
    """Fraction of each move that no corrections explain, by least squares over a tensor's values.

    The move is lr m / (a sqrt(v) + b), where a and b follow from the two corrections.
    """
    before = model["parameters"]
    moments = [_Moments(np.zeros_like(array), np.zeros_like(array)) for array in before]
    for call, after in enumerate(path):
        for i, gradient in enumerate(gradients_of(model, call)):
            move = np.ravel(before[i] - after[i])
            if gradient is None:
                yield math.inf if move.any() else 0.0
                continue
            own = moments[i]
            _moved(gradient, own, o, correction=1)
            root, first = np.sqrt(own.second).ravel(), o.lr * own.first.ravel()
            columns = np.stack([move * root, move], axis=1)
            scales = np.linalg.norm(columns, axis=0) + np.finfo(float).tiny
            a, b = np.linalg.lstsq(columns / scales, first, rcond=None)[0] / scales
            with np.errstate(all="ignore"):  # values that didn't move divide by zero
                off = np.max(np.abs(first / (a * root + b) - move))
                yield float(off / np.max(np.abs(move)))
        before = after
