"""Exercise: what a training step takes in each recipe, activations included."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from autograder.model.compare import by_reference, whole
from autograder.model.task import Case, Task
from peakmem.specs.recipes import PRECISIONS, storage_bytes

__all__ = ["training_bytes"]


_KEYS = (
    "weights",
    "gradients",
    "master_weights",
    "first_moment",
    "second_moment",
    "activations",
)
_RECIPES = ("fp32", "mixed", "mixed_fp32_grads", "bf16", "sgd")


def _training_bytes(n_params: int, activation_bytes_fp32: int, recipe: str) -> dict[str, int]:
    if recipe not in _RECIPES:
        raise ValueError(recipe)
    formats = PRECISIONS["fp32" if recipe == "sgd" else recipe]
    moment = None if recipe == "sgd" else formats.states
    kept = (formats.weights, formats.gradients, formats.master, moment, moment)
    sizes = [0 if dtype is None else storage_bytes(n_params, dtype) for dtype in kept]
    elements = activation_bytes_fp32 // 4
    return dict(zip(_KEYS, [*sizes, storage_bytes(elements, formats.compute)], strict=True))


Sizes = dict[str, int]


def _but(change: Callable[[Sizes, int, int, str], Mapping[str, int]]) -> Callable[..., Sizes]:
    """The reference's dict, updated with the entries that `change` returns."""

    def mutant(n: int, activations: int, recipe: str) -> Sizes:
        right = _training_bytes(n, activations, recipe)
        return {**right, **change(right, n, activations, recipe)}

    return mutant


def _bytes_cases(rng: np.random.Generator) -> list[Case]:
    def call(recipe: str) -> list[object]:
        return [int(rng.integers(10**6, 10**9)), 4 * int(rng.integers(10**6, 10**9)), recipe]

    drawn = [call(recipe) for recipe in _RECIPES]
    # Most of these begin or end with a known name, or spell one in other letters.
    names = (
        "fp12",
        "MIXED",
        "mixed_fp16",
        "my_fp32",
        "fp32_adam",
        "bf16_adam",
        "sgd_momentum",
        "sgd ",
    )
    unknown: list[list[object]] = [[1000, 4000, name] for name in names]
    gpt3: list[list[object]] = [[175 * 10**9, 4 * 10**9, recipe] for recipe in _RECIPES]
    large: list[object] = [1, 4 * (2**53 + 1), "mixed"]  # no float holds half of it
    return [
        Case(("value",), {"calls": drawn}),
        Case(("value",), {"calls": [*drawn, *unknown]}),
        Case(
            ("value",),
            {"calls": [*gpt3, [1, 0, "mixed"], [2, 0, "mixed"], large]},
            fixed=True,
            about="there are very few parameters or very many bytes. Use whole numbers throughout.",
        ),
    ]


training_bytes = Task(
    id="lab07-training_bytes",
    parts={"value": 2},
    defines=("training_bytes",),
    probe="training_bytes",
    stretch=True,
    cases=_bytes_cases,
    judge=by_reference(
        _training_bytes,
        {
            "no_master_weights": _but(lambda right, n, a, r: {"master_weights": 0}),
            "master_weights_in_fp32_too": _but(
                lambda right, n, a, r: {"master_weights": 0 if r == "bf16" else 4 * n}
            ),
            "activations_not_halved": _but(lambda right, n, a, r: {"activations": a}),
            "activations_always_halved": _but(lambda right, n, a, r: {"activations": a // 2}),
            "everything_halved": _but(
                lambda right, n, a, r: {
                    "first_moment": min(right["first_moment"], 2 * n if "mixed" in r else 4 * n),
                    "second_moment": min(right["second_moment"], 2 * n if "mixed" in r else 4 * n),
                }
            ),
            "moments_in_sgd": _but(
                lambda right, n, a, r: (
                    {"first_moment": 4 * n, "second_moment": 4 * n} if r == "sgd" else {}
                )
            ),
            "bytes_a_parameter": lambda n, a, r: {
                **_training_bytes(1, 0, r),
                "activations": _training_bytes(n, a, r)["activations"],
            },
            "not_whole": lambda n, a, r: {
                **_training_bytes(n, a, r),
                "activations": _training_bytes(n, a, r)["activations"] / 1,
            },
        },
        equal=whole(),
        write=lambda n, a, recipe: f"training_bytes({n}, {a}, {recipe!r})",
    ),
    mistakes={
        "no_master_weights": "Your mixed recipes have no master weights: 4 bytes per parameter.",
        "master_weights_in_fp32_too": "Your float32 recipes have master weights. Their weights "
        "are in float32 already.",
        "activations_not_halved": "You count float32 activations. In the 16-bit recipes they take "
        "half the bytes.",
        "activations_always_halved": "You halve the activations in the float32 recipes too.",
        "everything_halved": "Your mixed recipes keep the moments in 16 bits. Only weights, "
        "gradients (in 'mixed') and activations are in 16 bits: the moments stay in float32.",
        "moments_in_sgd": "Your 'sgd' keeps moments. Plain SGD has no state.",
        "bytes_a_parameter": "Your result is the bytes per parameter. Multiply by n_params.",
        "not_whole": "Bytes are whole numbers: divide with //.",
    },
)
