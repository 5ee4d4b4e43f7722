"""activation_elements and boundary_bytes: the outputs of operations and layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from autograder.content.lab02.answers import exact_bytes
from autograder.content.one_at_a_time import one_at_a_time
from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["activation_elements", "boundary_bytes"]

_Dims = Mapping[str, int]

# activation_elements

_TAKES = {
    "conv2d": ("bs", "nc", "wo", "ho"),
    "linear": ("bs", "m", "n", "p"),
    "transformer": ("bs", "seq_len", "h"),
}
_OUTPUT = _TAKES | {"linear": ("bs", "m", "p")}


def _elements(op: str, dims: _Dims) -> int:
    if op not in _OUTPUT:
        raise ValueError(f"no such op: {op}")
    return prod(dims[name] for name in _OUTPUT[op])


def _with(op: str, *names: str) -> Callable[[str, _Dims], int]:
    """The reference, except for one op, whose output has these dimensions."""

    def mutant(asked: str, dims: _Dims) -> int:
        return prod(dims[name] for name in names) if asked == op else _elements(asked, dims)

    return mutant


def _without_batch(op: str, dims: _Dims) -> int:
    return _elements(op, dict(dims) | {"bs": 1})


def _unknown_is(answer: Callable[[_Dims], int | None]) -> Callable[[str, _Dims], int | None]:
    return lambda op, dims: _elements(op, dims) if op in _OUTPUT else answer(dims)


def _activation_cases(rng: np.random.Generator) -> list[Case]:
    def draw(op: str) -> list[object]:
        # Primes, so that no two products are equal by chance.
        primes = rng.choice([3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 1009], 4, replace=False)
        # In random order, to catch answers that go by the order instead of the names.
        names = rng.permutation(_TAKES[op]).tolist()
        return [op, {name: int(size) for name, size in zip(names, primes, strict=False)}]

    # Unknown ops with the dimensions of each. These catch answers that go by parts of names.
    others = {
        "conv2d": ("conv1d", "conv2d_transpose", "my_conv2d"),
        "linear": ("Linear", "bilinear", "linear2"),
        "transformer": ("attention", "transformers", "mytransformer", "transformer ", ""),
    }
    unknown = []
    for op, names in others.items():
        known, dims = draw(op)
        unknown += [[known, dims], *([other, dims] for other in names)]
    gpt3 = ["transformer", {"bs": 1562, "seq_len": 2048, "h": 12288}]
    # Products that fit into int64 but into no float.
    large = [
        [op, dict(zip(names, (1009, 10**7 + 19, 11, 10**6 + 3), strict=False))]
        for op, names in _TAKES.items()
    ]
    # One dimension differs at a time, to catch results cached under the others.
    ones = {op: dict.fromkeys(names, 1) for op, names in _TAKES.items()}
    twos = [[op, {**dims, name: 2}] for op, dims in ones.items() for name in _OUTPUT[op]]
    return [
        Case(("elements",), {"calls": [draw(op) for op in _TAKES for _ in range(6)]}),
        Case(("elements",), {"calls": unknown}),
        Case(("elements",), {"calls": [gpt3, *large, *map(list, ones.items()), *twos]}, fixed=True),
    ]


def _written(op: str, dims: _Dims) -> str:
    named = "".join(f", {name}={size}" for name, size in dims.items())
    return f"activation_elements({op!r}{named})"


activation_elements = Task(
    id="lab02-activation_elements",
    stretch=True,
    parts={"elements": 1},
    defines=("activation_elements",),
    probe="activation_elements",
    cases=_activation_cases,
    judge=by_reference(
        _elements,
        {
            "linear_input": _with("linear", "bs", "m", "n"),
            "linear_weight": _with("linear", "n", "p"),
            "linear_all_four": _with("linear", "bs", "m", "n", "p"),
            "conv_without_channels": _with("conv2d", "bs", "wo", "ho"),
            "without_batch": _without_batch,
            "unknown_op_taken": _unknown_is(lambda dims: prod(dims.values())),
            "unknown_op_none": _unknown_is(lambda dims: None),
        },
        equal=exact_bytes,
        write=_written,
    ),
    mistakes={
        "linear_input": "bs x m x n is the linear layer's input. Its output has p where the input "
        "has n.",
        "linear_weight": "n x p is the linear layer's weight, a parameter. Its output is an "
        "activation, bs x m x p.",
        "linear_all_four": "You multiply all four dimensions, which counts multiplications. The "
        "output has no dimension n, because the layer sums over it.",
        "conv_without_channels": "A convolution outputs nc channels, each with wo x ho elements.",
        "without_batch": "Every example of the batch has its own activations: multiply by bs.",
        "unknown_op_taken": "Raise ValueError for any other op.",
        "unknown_op_none": "Raise ValueError for any other op; your function returns None.",
    },
)


# boundary_bytes


def _bytes(n_layers: int, tokens: int, d_model: int, bytes_per_element: int) -> int:
    return n_layers * tokens * d_model * bytes_per_element


def _boundary_cases(rng: np.random.Generator) -> list[Case]:
    def draw() -> list[int]:
        n_layers, width = int(rng.integers(3, 120)), int(rng.integers(1, 200))
        return [n_layers, int(rng.integers(10**5, 10**7)), 64 * width, int(rng.choice([2, 4]))]

    alike = one_at_a_time([96, 3_200_000, 12288, 2], {0: 12, 1: 1_600_000, 2: 768, 3: 4})
    slide = [[96, 3_200_000, 12288, 2], [96, 3_200_000, 12288, 4], [1, 3_200_000, 12288, 1]]
    return [
        Case(("bytes",), {"calls": [draw() for _ in range(12)]}),
        Case(("bytes",), {"calls": [*slide, [1, 1, 1, 1], *alike]}, fixed=True),
        # Beyond 2**53 no float holds every whole number; int64 still does.
        Case(("bytes",), {"calls": [[3, 10**12 + 1, 12289, 1]]}, fixed=True),
    ]


boundary_bytes = Task(
    id="lab02-boundary_bytes",
    stretch=True,
    parts={"bytes": 1},
    defines=("boundary_bytes",),
    probe="boundary_bytes",
    cases=_boundary_cases,
    judge=by_reference(
        _bytes,
        {
            "rounded_to_gb": lambda n, t, d, b: n * (t * d * b // 10**9) * 10**9,
            "rounded_and_in_gb": lambda n, t, d, b: n * (t * d * b // 10**9),
            "in_gb": lambda n, t, d, b: _bytes(n, t, d, b) / 1e9,
            "in_gib": lambda n, t, d, b: _bytes(n, t, d, b) / 2**30,
            "elements": lambda n, t, d, b: n * t * d,
            "float_product": lambda n, t, d, b: int(float(n) * t * d * b),
            "one_layer": lambda n, t, d, b: t * d * b,
            "one_boundary_more": lambda n, t, d, b: (n + 1) * t * d * b,
            "one_boundary_less": lambda n, t, d, b: (n - 1) * t * d * b,
        },
        equal=exact_bytes,
        write=lambda *sizes: f"boundary_bytes({', '.join(map(str, sizes))})",
    ),
    mistakes={
        "rounded_to_gb": "You round one layer to whole GB before you multiply by the layers. "
        "Multiply exactly.",
        "rounded_and_in_gb": "You round to whole GB before you multiply, and return GB. Multiply "
        "exactly, and return bytes.",
        "in_gb": "Your answer is in GB (10**9 bytes). Return bytes; units are for printing.",
        "in_gib": "Your answer is in GiB (2**30 bytes). Return bytes; units are for printing.",
        "elements": "You count elements. Multiply by the bytes per element.",
        "float_product": "You multiply floats, and floats above 2**53 can't represent every "
        "integer. Multiply integers.",
        "one_layer": "That is one layer's boundary. There are n_layers of them.",
        "one_boundary_more": "Count one boundary per layer, so n_layers; you count one too many.",
        "one_boundary_less": "Count one boundary per layer, so n_layers; you count one too few.",
    },
)
