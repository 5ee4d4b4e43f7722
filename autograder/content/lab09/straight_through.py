"""fake_quant and ternary_linear: rounding in forward, and gradients as if there were none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.content.lab09.figures import Array, same_codes
from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["fake_quant", "quantized_with_gradient", "ternary", "ternary_linear"]


_STATE_SHARED = (
    "Another call between forward and backward changes your gradients. Keep backward's inputs in "
    "ctx, not on the class."
)


# fake_quant


def quantized_with_gradient(
    x: Array,
    bits: int,
    upstream: Array,
    *,
    top: Callable[[int], int] = lambda bits: 2 ** (bits - 1) - 1,
    clips: bool = True,
    passes: Callable[[Array], Array] = lambda x: np.abs(x) <= 1,
    rounding: Callable[[Array], Array] = np.rint,
) -> dict[str, Array]:
    """Return the value and the gradient of x, in float64; options are mistakes."""
    values = x.astype(np.float64)
    inside = np.clip(values, -1, 1) if clips else values
    value = rounding(inside * top(bits)) / top(bits)
    return {"value": value, "gradient": upstream * passes(values)}


def _draw(rng: np.random.Generator, bits: int, largest: float) -> list[Any]:
    """Values near the codes and, where `largest` is above 1, beyond the range on both sides."""
    top = 2 ** (bits - 1) - 1
    shape = (3, int(rng.integers(5, 9)))
    # Closer to a code than to the midpoint of two, where either code is right. No value is at an
    # end of the range, where either gradient is right.
    end = top - 0.1
    x = np.clip(rng.integers(-top, top + 1, shape) + rng.uniform(-0.4, 0.4, shape), -end, end) / top
    if largest > 1:
        # torch.fake_quantize lets gradients pass up to half a step beyond the ends: one value is
        # just beyond that, and one anywhere.
        x[0, :2] = [1 + rng.uniform(0.6, 0.9) / top, -rng.uniform(1.6, largest)]
    upstream = rng.uniform(0.5, 2, shape) * rng.choice([-1, 1], shape)
    return [x.astype(np.float32), bits, upstream.astype(np.float32)]


def _fake_cases(rng: np.random.Generator) -> list[Case]:
    inside = [_draw(rng, bits, 1.0) for bits in (8, 4, 3, 2)]
    beyond = [_draw(rng, bits, 3.0) for bits in (8, 5, 3, 2)]
    # Between two codes, but not at the midpoint, where either code is right.
    between = [np.array([0.45, -0.45, 0.6, 0.2], np.float32), 2, np.full(4, 3.0, np.float32)]
    return [
        Case(("value",), {"calls": inside}),
        Case(("value",), {"calls": [*inside, *beyond]}),
        Case(("value",), {"calls": [*beyond, between]}),
    ]


_Q = quantized_with_gradient

fake_quant = Task(
    id="lab09-fake_quant",
    parts={"value": 2},
    defines=("fake_quant",),
    probe="fake_quant",
    stretch=True,
    cases=_fake_cases,
    judge=by_reference(
        _Q,
        {
            "no_gradient": lambda *a: _Q(*a, passes=np.zeros_like),
            "clipped_too": lambda *a: _Q(*a, passes=np.ones_like),
            "never_clipped": lambda *a: _Q(*a, clips=False, passes=np.ones_like),
            "levels_of_a_power": lambda *a: _Q(*a, top=lambda bits: 2 ** (bits - 1)),
            "unsigned_levels": lambda *a: _Q(*a, top=lambda bits: 2**bits - 1),
            "truncates": lambda *a: _Q(*a, rounding=np.trunc),
            "not_rounded": lambda *a: _Q(*a, rounding=lambda x: x),
            "state_shared": lambda x, bits, upstream: {
                **_Q(x, bits, upstream),
                "gradient": _Q(1 - x, bits, upstream)["gradient"],
            },
        },
        equal=same_codes,
        write=lambda x, bits, upstream: f"x of shape {x.shape}, bits={bits}",
    ),
    mistakes={
        "no_gradient": "Your gradient is 0 everywhere, like torch.round's. Pass the gradient "
        "straight through, as if nothing had been rounded.",
        "clipped_too": "Your gradient passes where the value was clipped. There a small change in "
        "x has no effect, so the gradient is 0.",
        "never_clipped": "You never clip. Values beyond 1 have no code: clip them.",
        "levels_of_a_power": "Your step is 1 / 2^(bits-1). The codes go from -(2^(bits-1) - 1) to "
        "2^(bits-1) - 1.",
        "unsigned_levels": "Your step is 1 / (2^bits - 1), which fits unsigned codes. Here half "
        "of the codes are negative.",
        "truncates": "You truncate codes towards 0. Round to the nearest code.",
        "not_rounded": "Your values aren't rounded.",
        "state_shared": _STATE_SHARED,
    },
)


# ternary_linear


def ternary(
    x: Array,
    weight: Array,
    upstream: Array,
    *,
    size: Callable[[Array], Any] = lambda w: np.abs(w).mean(),
    scaled: bool = True,
    passes: Callable[[Array, float], Array] = lambda w, size: np.ones_like(w),
    backward_rounded: bool = True,
) -> dict[str, Array]:
    """Return the value and both gradients, in float64; options are mistakes."""
    x, weight, upstream = (a.astype(np.float64) for a in (x, weight, upstream))
    scale = size(weight)
    codes = np.clip(np.rint(weight / scale), -1, 1)
    used = codes * scale if scaled else codes
    gradient = upstream.T @ x  # (n, k)
    return {
        "value": x @ used.T,
        "x": upstream @ (used if backward_rounded else weight),
        "weight": gradient * passes(weight, scale),
    }


def _ternary_cases(rng: np.random.Generator) -> list[Case]:
    def call() -> list[Any]:
        b, k, n = (int(rng.integers(low, low + 4)) for low in (3, 6, 11))
        x, weight = rng.normal(size=(b, k)), rng.normal(size=(n, k)) * 0.05
        # No value is near half the mean size, where the last bit decides between two codes.
        half = np.abs(weight).mean() / 2
        near = np.abs(np.abs(weight) / half - 1) < 0.02
        weight[near] *= 1.2
        upstream = rng.normal(size=(b, n))
        return [a.astype(np.float32) for a in (x, weight, upstream)]

    def calls() -> list[Any]:
        drawn = [call() for _ in range(3)]
        x, weight, upstream = drawn[0]
        # Equal shapes with another mean, then the same weight with another x.
        return [*drawn, [x, 2 * weight[::-1].copy(), upstream], [x[::-1].copy(), weight, upstream]]

    return [Case(("value",), {"calls": calls()}) for _ in range(2)]


ternary_linear = Task(
    id="lab09-ternary_linear",
    parts={"value": 2},
    defines=("ternary_linear",),
    probe="ternary_linear",
    stretch=True,
    cases=_ternary_cases,
    judge=by_reference(
        ternary,
        {
            "absmax": lambda *a: ternary(*a, size=lambda w: np.abs(w).max()),
            "a_row_each": lambda *a: ternary(
                *a, size=lambda w: np.abs(w).mean(axis=1, keepdims=True)
            ),
            "not_scaled_back": lambda *a: ternary(*a, scaled=False),
            "no_gradient": lambda *a: ternary(*a, passes=lambda w, size: np.zeros_like(w)),
            "stopped_where_clipped": lambda *a: ternary(
                *a, passes=lambda w, size: np.abs(w) <= size
            ),
            "state_shared": lambda x, weight, upstream: {
                **ternary(1 - x, 1 - weight, upstream),
                "value": ternary(x, weight, upstream)["value"],
            },
            "backward_unrounded": lambda *a: ternary(*a, backward_rounded=False),
        },
        equal=same_codes,
        write=lambda x, weight, upstream: f"x of shape {x.shape}, weight of {weight.shape}",
    ),
    mistakes={
        "absmax": "You divide by the largest absolute value, so most codes are 0. BitNet b1.58 "
        "divides by the mean absolute value.",
        "a_row_each": "You take a mean for each row. BitNet b1.58 takes one mean for the whole "
        "matrix.",
        "not_scaled_back": "Your weights are -1, 0 and 1. Multiply them by the mean absolute "
        "value again.",
        "no_gradient": "Your weight gets a gradient of 0, like torch.round's. Pass the gradient "
        "straight through.",
        "stopped_where_clipped": "You stop the gradient where a code was clipped. Here it passes "
        "everywhere: otherwise the largest weights would never change again.",
        "state_shared": _STATE_SHARED,
        "backward_unrounded": "Your gradient of x goes through the unrounded weight. It goes "
        "through the weight that forward used.",
    },
)
