"""state_bytes: what optimizers remember, from the shapes of the parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["state_bytes", "state_bytes_of"]

Shape = tuple[int, ...]
PerTensor = Callable[[Shape], int]

_BLOCK = 256  # values that share a scale


def _blocks(values: int) -> int:
    return -(-values // _BLOCK)


def _adafactor(shape: Shape) -> int:
    if len(shape) < 2:
        return 4 * math.prod(shape)
    rows = math.prod(shape[:-1])
    columns = math.prod(shape[:-2]) * shape[-1]
    return 4 * (rows + columns)


def _adam8bit(shape: Shape) -> int:
    n = math.prod(shape)
    return 2 * (n + 4 * _blocks(n))


_BYTES: dict[str, PerTensor] = {
    "sgd": lambda shape: 0,
    "momentum": lambda shape: 4 * math.prod(shape),
    "adam": lambda shape: 8 * math.prod(shape),
    "adafactor": _adafactor,
    "adam8bit": _adam8bit,
}


def state_bytes_of(shapes: Sequence[Shape], optimizer: str) -> int:
    """Return the bytes of state for float32 parameters, by the exercise's conventions."""
    return sum(map(_BYTES[optimizer], shapes))


def _but(optimizer: str, wrong: PerTensor) -> Callable[[Sequence[Shape], str], int]:
    """The reference, except for one optimizer."""

    def mutant(shapes: Sequence[Shape], name: str) -> int:
        return sum(map(wrong, shapes)) if name == optimizer else state_bytes_of(shapes, name)

    return mutant


def _each(change: Callable[[int, Sequence[Shape], str], int]) -> Callable[..., int]:
    """The reference's result, changed for all optimizers."""
    return lambda shapes, name: change(state_bytes_of(shapes, name), shapes, name)


def _values(shapes: Sequence[Shape]) -> int:
    return sum(map(math.prod, shapes))


def _flattened(shape: Shape) -> int:
    if len(shape) < 2:
        return _adafactor(shape)
    return 4 * (shape[0] + math.prod(shape[1:]))


def _is_wide(shape: Shape) -> bool:
    """Tell whether two dimensions are larger than 1."""
    return sum(size > 1 for size in shape) > 1


def _blocks_over_all(shapes: Sequence[Shape], name: str) -> int:
    if name != "adam8bit":
        return state_bytes_of(shapes, name)
    n = _values(shapes)
    return 2 * (n + 4 * _blocks(n))


def _cases(rng: np.random.Generator) -> list[Case]:
    def size(low: int = 2, high: int = 90) -> int:
        return int(rng.integers(low, high))

    shapes: list[Shape] = [
        (size(), size()),
        (size(),),
        (size(300, 900), size()),
        (size(2, 9), size(), size()),
        (size(), size(2, 9), 3, 5),
        (size(), 3, size(2, 9), 5, 7),
        (),
    ]
    shapes.append(shapes[1])  # equal tensors each have their own state
    edges = [(16, 16), (512,), (257,), (3, 171)]  # whole blocks, and whole blocks plus one value
    flat = [(1, 171), (90, 1), (1, 1, 7)]  # matrices whose means take more than their values
    small = ("adafactor", "adam8bit")
    simple = [[shapes, name] for name in ("sgd", "momentum", "adam")]
    return [
        Case(("value",), {"calls": [*simple, [[], "adam"]]}),
        Case(("value",), {"calls": [[s, name] for name in small for s in (shapes[:3], shapes)]}),
        Case(("value",), {"calls": [[edges, name] for name in small]}, fixed=True),
        Case(("value",), {"calls": [[flat, name] for name in small]}),
    ]


state_bytes = Task(
    id="lab03-state_bytes",
    parts={"value": 2},
    defines=("state_bytes",),
    probe="state_bytes",
    stretch=True,
    cases=_cases,
    judge=by_reference(
        state_bytes_of,
        {
            "elements": _each(lambda n_bytes, shapes, name: n_bytes // 4),
            "parameters_too": _each(lambda n_bytes, shapes, name: n_bytes + 4 * _values(shapes)),
            "one_moment": _but("adam", lambda shape: 4 * math.prod(shape)),
            "twelve_bytes": _but("adam", lambda shape: 12 * math.prod(shape)),
            "counters_too": _but("adam", lambda shape: 8 * math.prod(shape) + 4),
            "flattened_matrix": _but("adafactor", _flattened),
            "batches_left_out": _but(
                "adafactor", lambda s: 4 * (s[-2] + s[-1] if len(s) > 1 else math.prod(s))
            ),
            "sum_of_sizes": _but(
                "adafactor", lambda s: 4 * (sum(s) if len(s) > 1 else math.prod(s))
            ),
            "not_factored_if_flat": _but(
                "adafactor", lambda s: _adafactor(s) if _is_wide(s) else 4 * math.prod(s)
            ),
            "not_factored": _but("adafactor", lambda shape: 4 * math.prod(shape)),
            "first_moment_in_adafactor": _but(
                "adafactor", lambda shape: _adafactor(shape) + 4 * math.prod(shape)
            ),
            "no_scales": _but("adam8bit", lambda shape: 2 * math.prod(shape)),
            "scales_once": _but(
                "adam8bit", lambda shape: 2 * math.prod(shape) + 4 * _blocks(math.prod(shape))
            ),
            "blocks_rounded_down": _but(
                "adam8bit", lambda shape: 2 * (math.prod(shape) + 4 * (math.prod(shape) // _BLOCK))
            ),
            "blocks_over_all_tensors": _blocks_over_all,
        },
        write=lambda shapes, optimizer: f"state_bytes({shapes}, {optimizer!r})",
    ),
    mistakes={
        "elements": "Your result counts values. A float32 value takes 4 bytes.",
        "parameters_too": "Your result includes the parameters, 4 bytes each. Count only what the "
        "optimizer keeps in addition to them.",
        "one_moment": "Your Adam keeps 4 bytes per parameter. It has two moments: 8.",
        "twelve_bytes": "Your Adam keeps 12 bytes per parameter, which counts the gradient or a "
        "master copy as state. The two moments alone take 8.",
        "counters_too": "Your Adam has a step counter for each tensor. By this exercise's "
        "convention, leave counters out.",
        "flattened_matrix": "Your Adafactor treats a tensor of three or more dimensions as one "
        "matrix. It keeps a mean over the last dimension, n / last values, and a mean over the "
        "second-last, n / second_last values.",
        "batches_left_out": "Your Adafactor keeps only last + second_last values. A tensor of "
        "three or more dimensions is a stack of matrices, each with its own rows and columns.",
        "sum_of_sizes": "Your Adafactor adds up the sizes of all dimensions. That is correct only "
        "for a matrix: a tensor of three or more dimensions is a stack of matrices, each with its "
        "own rows and columns, so it keeps n / last + n / second_last values.",
        "not_factored_if_flat": "Your Adafactor keeps a value for each parameter of a matrix with "
        "one row or one column. A dimension of size 1 is still a dimension: keep both means.",
        "not_factored": "Your Adafactor keeps a value for each parameter. For two or more "
        "dimensions, it keeps a mean over each of the last two.",
        "first_moment_in_adafactor": "Your Adafactor keeps a first moment. The exercise's "
        "Adafactor has none.",
        "no_scales": "Your 8-bit Adam has no scales: each block of 256 values needs a float32.",
        "scales_once": "Your 8-bit Adam has 4 bytes of scales per block. Each of the two moments "
        "has its own float32 scales: 2 (n + 4 blocks).",
        "blocks_rounded_down": "Your 8-bit Adam drops a short last block. That block has a scale "
        "too: round the number of blocks up.",
        "blocks_over_all_tensors": "Your 8-bit Adam cuts all tensors together into blocks. Each "
        "tensor has its own blocks, so round up for each tensor.",
    },
)
