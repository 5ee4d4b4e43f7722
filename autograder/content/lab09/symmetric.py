"""Exercise: weights as whole numbers, with one step for a tensor or for each channel.

Drawn values are at most 0.4 steps from a code, so that any reasonable order of operations rounds
them alike. Ties are in fixed cases, whose steps are powers of two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.content.lab09.figures import (
    FROM_MEMORY,
    IN_PLACE,
    Array,
    OpenStep,
    same_codes,
    with_open,
)
from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["quantize_symmetric", "quantized"]

Rounding = Callable[[Array], Array]


def _across(x: Array, axis: int | None) -> tuple[int, ...]:
    """The dimensions that share a step: all, or all except the channels'."""
    return tuple(d for d in range(x.ndim) if d != axis)


def channel_sizes(x: Array, axis: int | None) -> Array:
    """Return the largest absolute value of each channel, in a shape that broadcasts with x."""
    sizes: Array = np.abs(x).max(axis=_across(x, axis), keepdims=True)
    return sizes


def quantized(
    x: Array,
    bits: int,
    axis: int | None,
    *,
    rounding: Rounding = np.rint,
    steps_a_side: Callable[[int], int] = lambda bits: 2 ** (bits - 1) - 1,
    lowest: Callable[[int], int] = lambda bits: -(2 ** (bits - 1) - 1),
) -> dict[str, Any]:
    """Return the probe's answer: codes, steps and decoded values; options are mistakes.

    Computed in float32 as in the exercise, because float64 could give other codes.
    """
    sizes = channel_sizes(x, axis)
    scale = np.where(sizes == 0, np.float32(1), sizes / np.float32(steps_a_side(bits)))
    top = 2 ** (bits - 1) - 1
    codes = np.clip(rounding(x / scale), lowest(bits), top).astype(np.int8)
    return {
        "type": "int8",
        "codes": codes,
        "scale": with_open(scale, sizes == 0, OpenStep(1)),
        "shape": [] if axis is None else list(scale.shape),
        "decoded": codes * scale,
        "decodes": "alike",
    }


def _half_up(x: Array) -> Array:
    up: Array = np.floor(x + 0.5)
    return up


def _half_away(x: Array) -> Array:
    away: Array = np.trunc(x + np.copysign(0.5, x))
    return away


def _half_down(x: Array) -> Array:
    down: Array = np.ceil(x - 0.5)
    return down


def _half_to_zero(x: Array) -> Array:
    inwards: Array = np.copysign(np.ceil(np.abs(x) - 0.5), x)
    return inwards


def _other_axis(x: Array, bits: int, axis: int | None) -> dict[str, Any]:
    return quantized(x, bits, None if axis is None else 1 - axis)


def _step_of_zero(x: Array, bits: int, axis: int | None) -> dict[str, Any]:
    """0 / 0 is NaN, which torch converts to code 0, so only the step of 0 reveals the mistake."""
    right = quantized(x, bits, axis)
    zero = channel_sizes(x, axis).ravel() == 0
    return {**right, "scale": np.where(zero, 0.0, right["scale"]).tolist()}


def _flat_steps(x: Array, bits: int, axis: int | None) -> dict[str, Any]:
    right = quantized(x, bits, axis)
    square = x.shape[0] == x.shape[-1]  # then a vector broadcasts along either dimension
    decoded = None if square else right["decoded"]
    return {**right, "shape": right["shape"] and [len(right["scale"])], "decoded": decoded}


def _decoding(how: str) -> Callable[..., dict[str, Any]]:
    """Codes and steps are right, and `dequantize` is wrong in this way."""

    def coded(x: Array, bits: int, axis: int | None) -> dict[str, Any]:
        shown = how if x.any() else None  # zeros stay zeros, whatever the mistake
        return {**quantized(x, bits, axis), "decodes": shown, "decoded": None}

    return coded


def _draw(rng: np.random.Generator, rows: int, columns: int, bits: int, axis: int | None) -> Array:
    """Values near codes; in each channel one has the largest magnitude and a random sign."""
    top = 2 ** (bits - 1) - 1
    values = rng.integers(-top, top + 1, (rows, columns)) + rng.uniform(-0.4, 0.4, (rows, columns))
    values = np.clip(values, -top, top)
    scale = 2.0 ** rng.uniform(-6, 3, (rows if axis == 0 else 1, columns if axis == 1 else 1))
    for channel in range(rows if axis == 0 else columns if axis == 1 else 1):
        place: list[Any] = [int(rng.integers(rows)), int(rng.integers(columns))]
        if axis is not None:
            place[axis] = channel
        values[tuple(place)] = top * rng.choice([-1, 1])
    return (values * scale).astype(np.float32)


def _cases(rng: np.random.Generator) -> list[Case]:
    def call(bits: int, axis: int | None) -> list[Any]:
        rows, columns = int(rng.integers(3, 7)), int(rng.integers(7, 12))
        return [_draw(rng, rows, columns, bits, axis), bits, axis]

    tensor = [call(bits, None) for bits in (8, 4, 3, 2)]
    channel = [call(bits, axis) for bits in (8, 5) for axis in (0, 1)]
    channel += [[_draw(rng, 1, 7, 8, 0), 8, 0], [_draw(rng, 7, 1, 8, 1), 8, 1]]  # a single channel
    channel += [[_draw(rng, 5, 5, 8, axis), 8, axis] for axis in (0, 1)]  # a square
    empty_row, empty_column = call(6, 0), call(6, 1)
    empty_row[0][1] = empty_column[0][:, 1] = 0
    vector = [*call(7, None)]
    vector[0] = vector[0].ravel()
    tiny = call(8, 0)
    tiny[0] *= np.float32(2.0**-40)  # a step with a lower bound would round it to 0
    again = [[f * x, bits, axis] for x, bits, axis in tensor for f in (1, -3)]  # of equal shapes
    ties = [np.array([127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 63.5], np.float32), 8, None]
    low = [np.array([[-7.0, 2.5, -3.5, 0.5], [0.0, 0.0, 0.0, 0.0]], np.float32), 4, 0]
    one = [np.array([1.0, 0.5, -0.5, -1.0, 0.25], np.float32), 2, None]
    negative = [np.array([-127.0, 60.0, 1.0], np.float32), 8, None]
    zeros = [np.zeros((2, 3), np.float32), 8, None]
    # The same values with other bits or axes. None is near the midpoint of two codes.
    alike = np.array([[889.0, 254.0, 508.0], [127.0, -50.0, 84.0]], np.float32)
    same = [[alike, bits, axis] for bits in (4, 8) for axis in (0, 1, None)]
    return [
        Case(("value",), {"calls": tensor}),
        Case(("value",), {"calls": [*tensor, *channel]}),
        Case(("value",), {"calls": [*again, *channel, vector, tiny]}),
        Case(("value",), {"calls": [*channel, empty_row, empty_column]}),
        Case(
            ("value",),
            {"calls": [ties, low, one, negative, zeros, *same]},
            fixed=True,
            about="values are halfway between two codes, or all 0, or the largest is negative, or "
            "the same values come with other bits or another axis.",
        ),
    ]


quantize_symmetric = Task(
    id="lab09-quantize_symmetric",
    parts={"value": 3},
    defines=("quantize_symmetric", "dequantize"),
    probe="quantize_symmetric",
    cases=_cases,
    judge=by_reference(
        quantized,
        {
            "truncates": lambda x, b, a: quantized(x, b, a, rounding=np.trunc),
            "rounds_down": lambda x, b, a: quantized(x, b, a, rounding=np.floor),
            "half_up": lambda x, b, a: quantized(x, b, a, rounding=_half_up),
            "half_away": lambda x, b, a: quantized(x, b, a, rounding=_half_away),
            "half_down": lambda x, b, a: quantized(x, b, a, rounding=_half_down),
            "half_to_zero": lambda x, b, a: quantized(x, b, a, rounding=_half_to_zero),
            "other_axis": _other_axis,
            "axis_ignored": lambda x, b, a: {**quantized(x, b, None), "shape": None},
            "step_of_128": lambda x, b, a: quantized(
                x, b, a, steps_a_side=lambda b: 2 ** (b - 1), lowest=lambda b: -(2 ** (b - 1))
            ),
            "eight_bits_always": lambda x, b, a: quantized(x, 8, a),
            "divides_by_zero": _step_of_zero,
            "flat_steps": _flat_steps,
            "in_place": _decoding("in place"),
            "from_memory": _decoding("from memory"),
        },
        equal=same_codes,
        write=lambda x, bits, axis: (
            f"x of shape {x.shape} up to {np.abs(x).max():.2g}, bits={bits}, axis={axis}"
        ),
    ),
    mistakes={
        # These agree with truncation if all values are ties.
        "half_down": "You round ties down. Halfway between two codes, take the even one, as "
        "torch.round does.",
        "half_to_zero": "You round ties towards 0. Halfway between two codes, take the even one, "
        "as torch.round does.",
        "truncates": "You truncate codes towards 0, so the error is up to a whole step. Round "
        "before you convert to int8.",
        "rounds_down": "You round codes down, so the error is up to a whole step. Round to the "
        "nearest code.",
        "half_up": "You round ties up. Halfway between two codes, take the even one, as "
        "torch.round does.",
        "half_away": "You round ties away from 0. Halfway between two codes, take the even one, "
        "as torch.round does.",
        "other_axis": "Your steps are for the other axis. `axis` is the channels' axis: with "
        "axis=0 every row has its own step, so take the maximum over all other axes.",
        "axis_ignored": "You always use one step for the whole tensor. Use `axis`.",
        "step_of_128": "Your step is the largest absolute value divided by 2^(bits-1). Divide by "
        "2^(bits-1) - 1: both sides of 0 have equally many codes.",
        "eight_bits_always": "You always quantize to 8 bits. Use `bits`.",
        "divides_by_zero": "A channel of zeros gets a step of 0, and 0 / 0 is NaN. Use a step of 1 "
        "there.",
        "flat_steps": "Your steps are a vector. With axis=0 the shape is (rows, 1), with axis=1 "
        "(1, columns), so that they multiply the codes.",
        "in_place": IN_PLACE.format("dequantize"),
        "from_memory": FROM_MEMORY.format("dequantize"),
    },
)
