"""Exercise: unsigned codes with a zero point, for values on one side of 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.content.lab09.figures import (
    Array,
    Open,
    OpenStep,
    same_codes,
    same_step,
    with_open,
)
from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["affine", "quantize_affine"]


def affine(
    x: Array,
    bits: int,
    axis: int | None,
    *,
    with_zero: bool = True,
    whole_zero: bool = True,
    levels_more: int = 0,
) -> dict[str, Any]:
    """Return the probe's answer: codes, steps, zero points and values; options are mistakes."""
    across = tuple(d for d in range(x.ndim) if d != axis)
    low, high = (f(x, axis=across, keepdims=True) for f in (np.min, np.max))
    if with_zero:
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    top = 2**bits - 1
    empty = low == high
    scale = np.where(empty, np.float32(1), (high - low) / np.float32(top + levels_more))
    zero = np.rint(-low / scale) if whole_zero else -low / scale
    if whole_zero and with_zero:
        codes = np.clip(np.rint(x / scale) + zero, 0, top)
    else:
        codes = np.clip(np.rint((x - low) / scale), 0, top)
    codes = codes.astype(np.uint8)
    zeros = empty & (low == 0)
    return {
        "type": "uint8",
        "codes": codes,
        "scale": with_open(scale, zeros, OpenStep(1)),
        "zero_point": with_open(zero, zeros, Open(0)),
        "shape": [] if axis is None else 2 * list(scale.shape),
        "wraps": False,
    }


def _equal(expected: Any, got: Any) -> bool:
    """If all values are 0, any step is right, and the codes equal the zero point."""
    free = np.array([isinstance(step, OpenStep) for step in expected["scale"]])[:, None]
    if not isinstance(got, dict) or not free.any():
        return same_codes(expected, got)
    codes, zeros = got.get("codes"), got.get("zero_point")
    if not isinstance(codes, np.ndarray) or not isinstance(zeros, list):
        return False
    if not all(same_step(Open(0), zero) for zero in zeros):
        return False
    if codes.shape != expected["codes"].shape or len(zeros) != len(expected["zero_point"]):
        return False
    rows = codes.reshape(len(zeros), -1)  # in the cases with zeros, channels are rows or one
    wanted = np.where(free, np.array(zeros)[:, None], expected["codes"].reshape(rows.shape))
    return same_codes({**expected, "codes": wanted.astype(np.int64).reshape(codes.shape)}, got)


def _symmetric(x: Array, bits: int, axis: int | None) -> dict[str, Any]:
    """A symmetric range, which wastes half the codes on one-sided values."""
    across = tuple(d for d in range(x.ndim) if d != axis)
    size = np.abs(x).max(axis=across, keepdims=True)
    top = 2**bits - 1
    scale = np.where(size == 0, np.float32(1), 2 * size / np.float32(top))
    zero = np.full_like(scale, 2.0 ** (bits - 1))
    codes = np.clip(np.rint(x / scale) + zero, 0, top).astype(np.uint8)
    steps = with_open(scale, size == 0, OpenStep(1))
    found = {"type": "uint8", "codes": codes, "scale": steps, "wraps": False}
    shape = [] if axis is None else 2 * list(scale.shape)
    return {**found, "zero_point": zero.ravel().tolist(), "shape": shape}


def _flat_steps(x: Array, bits: int, axis: int | None) -> dict[str, Any]:
    right = affine(x, bits, axis)
    return {**right, "shape": right["shape"] and 2 * [len(right["scale"])]}


def _in_int8(x: Array, bits: int, axis: int | None) -> dict[str, Any]:
    right = affine(x, bits, axis)
    zeros = np.array(right["zero_point"]).astype(np.int64).astype(np.int8)
    return {**right, "zero_point": zeros.tolist(), "wraps": True}


def _draw(rng: np.random.Generator, bits: int, axis: int | None, side: str) -> Array:
    """Values near codes; each channel's ends are at most 0.3 steps from a code.

    `side` says where they lie: on both sides of 0, above, below, or far above.
    """
    top = 2**bits - 1
    rows, columns = int(rng.integers(3, 6)), int(rng.integers(7, 12))
    values = np.empty((rows, columns))
    channels = 1 if axis is None else (rows, columns)[axis]
    for channel in range(channels):
        place: list[Any] = [slice(None), slice(None)]
        if axis is not None:
            place[axis] = channel
        shape = values[tuple(place)].shape
        zero = {"both": int(rng.integers(1, top)), "below": top}.get(side, 0)
        off = rng.choice([-1, 1]) * rng.uniform(0.15, 0.3) if side == "both" else 0.0
        low, high = -(zero + off), top - zero - off
        first = int(0.6 * top) + 1 if side == "far" else 0
        near = rng.integers(first - zero, top - zero + 1, shape) + rng.uniform(-0.4, 0.4, shape)
        drawn = np.clip(near, low, high)
        if side in ("both", "below"):  # otherwise 0 is the end of the range
            drawn[(0,) * drawn.ndim] = low
        if side != "below":
            drawn[(-1,) * drawn.ndim] = high
        values[tuple(place)] = drawn * 2.0 ** rng.uniform(-5, 2)
    return values.astype(np.float32)


def _cases(rng: np.random.Generator) -> list[Case]:
    def call(bits: int, axis: int | None, side: str) -> list[Any]:
        return [_draw(rng, bits, axis, side), bits, axis]

    both = [call(bits, None, "both") for bits in (8, 4, 3)]
    sided = [call(8, None, "above"), call(5, None, "below"), call(8, None, "far")]
    channel = [call(8, 0, "both"), call(6, 1, "both"), call(4, 0, "above")]
    again = [[f * x, bits, axis] for x, bits, axis in both for f in (1, -1)]  # of equal shapes
    # One row or one column still has steps of two dimensions.
    single = [[x[:1] if axis == 0 else x[:, :1], bits, axis] for x, bits, axis in channel]
    tiny = call(8, 0, "both")
    below_all = call(7, 1, "below")
    tiny[0] *= np.float32(2.0**-40)  # a step with a lower bound would round it to 0
    zeros: list[Any] = [np.zeros((2, 5), np.float32), 8, 0]
    one: list[Any] = [np.array([2.0, 1.2], np.float32), 4, None]
    # The ends and the zero point are ties: one code too many, unless it's clipped.
    ends: list[Any] = [np.array([-7.5, 0.0, 2.0, 7.5], np.float32), 4, None]
    constant = [np.full(3, rng.uniform(1, 9), np.float32), 8, None]  # the range includes 0
    below: list[Any] = [np.array([-3.0, -1.0, -2.0], np.float32), 2, None]
    # The same values with other bits or axes. None is near the midpoint of two codes.
    alike = np.array([[3825.0, 765.0], [255.0, 100.0]], np.float32)
    same = [[alike, bits, axis] for bits in (4, 8) for axis in (0, 1, None)]
    return [
        Case(("value",), {"calls": both}),
        Case(("value",), {"calls": [constant]}),
        Case(("value",), {"calls": [*both, *sided]}),
        Case(("value",), {"calls": [*both, *channel]}),
        Case(("value",), {"calls": [*again, *sided, *channel, *single, tiny, below_all, zeros]}),
        Case(
            ("value",),
            {"calls": [zeros, one, below, ends, *same]},
            fixed=True,
            about="all values are 0, or on one side of 0, or the ends of the range are halfway "
            "between two codes, or the same values come with other bits or another axis.",
        ),
    ]


quantize_affine = Task(
    id="lab09-quantize_affine",
    parts={"value": 2},
    defines=("quantize_affine",),
    probe="quantize_affine",
    cases=_cases,
    judge=by_reference(
        affine,
        {
            "zero_left_out": lambda x, b, a: affine(x, b, a, with_zero=False),
            "zero_not_whole": lambda x, b, a: affine(x, b, a, whole_zero=False),
            "levels_not_steps": lambda x, b, a: affine(x, b, a, levels_more=1),
            "both_sides_alike": _symmetric,
            "axis_ignored": lambda x, b, a: {**affine(x, b, None), "shape": None},
            "other_axis": lambda x, b, a: affine(x, b, None if a is None else 1 - a),
            "eight_bits_always": lambda x, b, a: affine(x, 8, a),
            "flat_steps": _flat_steps,
            "zero_point_wraps": lambda x, b, a: {**affine(x, b, a), "wraps": True},
            "zero_point_in_int8": _in_int8,
        },
        equal=_equal,
        write=lambda x, bits, axis: (
            f"x of shape {x.shape} up to {np.abs(x).max():.2g}, bits={bits}, axis={axis}"
        ),
    ),
    mistakes={
        "zero_left_out": "If all values are on one side of 0, your range leaves out 0, so 0.0 has "
        "no code. Extend the range to include 0.",
        "zero_not_whole": "Your zero point isn't a whole number, so 0.0 falls between two codes. "
        "Round it, and add it to the rounded codes.",
        "levels_not_steps": "Your step is the range divided by 2^bits. Between 2^bits codes there "
        "are 2^bits - 1 steps.",
        "both_sides_alike": "Your range is symmetric about 0. If all values are on one side, half "
        "of the codes are never used.",
        "axis_ignored": "You always use one step for the whole tensor. Use `axis`.",
        "other_axis": "Your steps are for the other axis. With axis=0 every row has its own step "
        "and zero point.",
        "eight_bits_always": "You always quantize to 8 bits. Use `bits`.",
        "flat_steps": "Your steps and zero points are vectors. With axis=0 the shape is "
        "(rows, 1), with axis=1 (1, columns).",
        "zero_point_wraps": "Your zero point has 8 bits, so q - zero_point wraps around below 0. "
        "Return floats.",
        "zero_point_in_int8": "Your zero point is int8, which ends at 127. Return floats.",
    },
)
