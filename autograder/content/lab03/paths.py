"""Paths of parameters from call to call: read from an answer, and compared with torch's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from autograder.content.lab03.adam import MUTANTS, Array, Model, Mutant, Path, calls_of

__all__ = ["error", "first_difference", "moved_and_stood", "mutants_like", "paths_in"]


def paths_in(models: Sequence[Model], value: Any) -> list[Path] | None:
    """Return the paths in a probe's answer, one per model; None if the answer has another form."""
    if not isinstance(value, list) or len(value) != len(models):
        return None
    paths = []
    for model, said in zip(models, value, strict=True):
        rows = said.get("parameters") if isinstance(said, dict) else None
        if not _are_rows(rows, model):
            return None
        paths.append([[array[call] for array in rows] for call in range(calls_of(model))])
    return paths


def _are_rows(rows: Any, model: Model) -> TypeGuard[list[Array]]:
    return (
        isinstance(rows, list)
        and len(rows) == len(model["parameters"])
        and all(
            isinstance(array, np.ndarray)
            and array.dtype.kind == "f"
            and array.shape == (calls_of(model), *start.shape)
            for array, start in zip(rows, model["parameters"], strict=True)
        )
    )


@dataclass(frozen=True)
class _Place:
    """One parameter after one call: its correct value, its value, and how far it has moved."""

    model: Model
    parameter: int
    call: int
    right: Array
    got: Array
    way: float  # the sum of its largest moves so far

    @property
    def off(self) -> Array:
        """Each value's error as a fraction of the way; inf for NaN."""
        size = np.abs(self.got - self.right)
        parts = np.where(size == 0, 0.0, size / self.way if self.way else np.inf)
        return np.nan_to_num(parts, nan=np.inf)


def _places(
    models: Sequence[Model], expected: Sequence[Iterable[list[Array]]], got: Sequence[Path]
) -> Iterator[_Place]:
    for model, right_path, path in zip(models, expected, got, strict=True):
        before = model["parameters"]
        ways = [0.0 for _ in before]
        for number, (rights, answers) in enumerate(zip(right_path, path, strict=True)):
            for i, (was, right, answer) in enumerate(zip(before, rights, answers, strict=True)):
                ways[i] += float(np.max(np.abs(right - was)))
                yield _Place(model, i, number + 1, right, answer, ways[i])
            before = rights


def error(models: Sequence[Model], expected: Sequence[Path], got: Sequence[Path]) -> float:
    """Return the largest error of any value after any call, as a fraction of the distance moved.

    The distance is how far the value's parameter has moved so far: the sum of its largest moves.
    """
    with np.errstate(all="ignore"):  # wrong steps overflow
        return max(float(np.max(place.off)) for place in _places(models, expected, got))


def mutants_like(
    models: Sequence[Model], options: Mapping[str, Any], got: Sequence[Path], tolerance: float
) -> list[str]:
    """Return the mistakes that lead to these paths, within `tolerance` of the distance moved."""

    def is_path_of(mutant: Mutant) -> bool:
        walks = mutant(models, options)
        return all(np.max(place.off) <= tolerance for place in _places(models, walks, got))

    with np.errstate(all="ignore"):  # some divide by zero
        return [name for name, mutant in MUTANTS.items() if is_path_of(mutant)]


def first_difference(
    models: Sequence[Model],
    options: Mapping[str, Any],
    expected: Sequence[Path],
    got: Sequence[Path],
    tolerance: float,
) -> str:
    """Return a sentence on the first value whose error exceeds `tolerance` of its way."""
    given = ", ".join(f"{name}={_word(value)}" for name, value in options.items())
    for place in _places(models, expected, got):
        if np.max(place.off) <= tolerance:
            continue
        at = np.unravel_index(int(np.argmax(place.off)), place.off.shape)
        layouts = place.model.get("layouts")
        layout = f", {layouts[place.parameter]} in memory" if layouts else ""
        right, got_value = f"{place.right[at]:.12g}", f"{place.got[at]:.12g}"
        return (
            f"With {given or 'the defaults'}, after call {place.call}, parameter "
            f"{place.parameter} (shape {place.right.shape}{layout}) at "
            f"{[int(k) for k in at]}: expected {right}, but got {got_value}."
        )
    return ""


def moved_and_stood(
    models: Sequence[Model], expected: Sequence[Path], got: Sequence[Path]
) -> tuple[set[str], set[str]]:
    """Return the memory layouts of parameters that moved, and of those that should have but didn't.

    All parameters of a model without layouts are "contiguous".
    """
    moved: set[str] = set()
    stood: set[str] = set()
    for model, right, path in zip(models, expected, got, strict=True):
        layouts = model.get("layouts") or ["contiguous"] * len(model["parameters"])
        for i, start in enumerate(model["parameters"]):
            if not np.array_equal(right[-1][i], start):
                stands = np.array_equal(path[-1][i], start)
                (stood if stands else moved).add(layouts[i])
    return moved, stood


def _word(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_word, value))})"
    return f"{value:.4g}"
