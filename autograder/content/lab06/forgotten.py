"""Detects an offloaded Adam that forgets its moments, or whose parameters iterator is used up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.content.lab03.adam import Array, Model, calls_of
from autograder.content.lab03.paths import paths_in
from peakmem.probes.lab03 import gradients_of

__all__ = ["forgotten", "stops_after_one"]

_NOT_WRITTEN_BACK = {  # whether m, and whether v, lasts until the next step
    "not_written_back": (0, 0),
    "m_not_written_back": (0, 1),
    "v_not_written_back": (1, 0),
}


def forgotten(
    models: Sequence[Model], options: Mapping[str, Any], said: Any, tolerance: float
) -> str:
    """Return the mistake that makes moments zero before each of Adam's steps; "" if none does."""
    got = paths_in(models, said)
    for name, lasts in _NOT_WRITTEN_BACK.items():
        if got is not None and all(
            np.allclose(right, after, rtol=1e-5, atol=tolerance)
            for model, path in zip(models, got, strict=True)
            for rights, afters in zip(_lasting(model, lasts, **options), path, strict=True)
            for right, after in zip(rights, afters, strict=True)
        ):
            return name
    return ""


def _lasting(
    model: Model,
    lasts: tuple[int, int],
    lr: float = 1e-3,
    betas: Sequence[float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> Iterator[list[Array]]:
    """Yield the parameters after each call if m and v last until the next step (1) or not (0)."""
    values = [np.asarray(array, dtype=np.float64) for array in model["parameters"]]
    m, v = [0.0 * value for value in values], [0.0 * value for value in values]
    steps = [0] * len(values)
    for call in range(calls_of(model)):
        for i, gradient in enumerate(gradients_of(model, call)):
            if gradient is None:
                continue
            steps[i] += 1
            m[i] = lasts[0] * betas[0] * m[i] + (1 - betas[0]) * gradient
            v[i] = lasts[1] * betas[1] * v[i] + (1 - betas[1]) * gradient**2
            root = np.sqrt(v[i] / (1 - betas[1] ** steps[i])) + eps
            values[i] = values[i] - lr * m[i] / (1 - betas[0] ** steps[i]) / root
        yield list(values)


def stops_after_one(models: Sequence[Model], said: Any) -> bool:
    """Tell whether the first step moved something, and later steps nothing."""
    got = paths_in(models, said)
    if got is None or all(len(path) == 1 for path in got):
        return False
    return all(
        not all(map(np.array_equal, path[0], model["parameters"]))
        and all(map(np.array_equal, path[0], path[-1]))
        for model, path in zip(models, got, strict=True)
    )
