"""bytes_per_parameter: what a recipe keeps for each parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from autograder.compare import by_reference
from autograder.task import Case, Task

__all__ = ["RECIPES", "bytes_per_parameter", "total_bytes"]

_KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")

RECIPES: Mapping[str, tuple[int, ...]] = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def total_bytes(recipe: str) -> int:
    """Return all bytes a parameter of a recipe."""
    return sum(RECIPES[recipe])


def _sizes(recipe: str) -> dict[str, int]:
    return dict(zip(_KEYS, RECIPES[recipe], strict=True))


def _but(wrong: Mapping[str, tuple[int, ...]]) -> Callable[[str], dict[str, int]]:
    """The reference, but for some recipes."""
    table = {**RECIPES, **wrong}
    return lambda recipe: dict(zip(_KEYS, table[recipe], strict=True))


def _cases(rng: np.random.Generator) -> list[Case]:
    names = [str(name) for name in rng.permutation(list(RECIPES))]
    return [Case(("value",), {"calls": [[name] for name in names]})]


bytes_per_parameter = Task(
    id="lab03-bytes_per_parameter",
    parts={"value": 1},
    defines=("bytes_per_parameter",),
    probe="bytes_per_parameter",
    cases=_cases,
    judge=by_reference(
        _sizes,
        {
            "no_master_weights": _but(
                {"mixed": (2, 2, 0, 4, 4), "mixed_fp32_grads": (2, 4, 0, 4, 4)}
            ),
            "master_weights_everywhere": _but({"fp32": (4, 4, 4, 4, 4)}),
            "master_weights_in_bf16_too": _but({"bf16": (2, 2, 4, 2, 2)}),
            "moments_in_16_bits": _but(
                {"mixed": (2, 2, 4, 2, 2), "mixed_fp32_grads": (2, 4, 4, 2, 2)}
            ),
            "moments_always_float32": _but({"bf16": (2, 2, 0, 4, 4)}),
            "gradients_like_weights": _but({"mixed_fp32_grads": (2, 2, 4, 4, 4)}),
            "gradients_always_float32": _but({"mixed": (2, 4, 4, 4, 4), "bf16": (2, 4, 0, 2, 2)}),
            "momentum_in_sgd": _but({"sgd": (4, 4, 0, 4, 0)}),
            "moments_in_sgd": _but({"sgd": (4, 4, 0, 4, 4)}),
            "absent_left_out": lambda recipe: {k: v for k, v in _sizes(recipe).items() if v},
            "bits": lambda recipe: {k: 8 * v for k, v in _sizes(recipe).items()},
        },
        write=lambda recipe: f"bytes_per_parameter({recipe!r})",
    ),
    mistakes={
        "no_master_weights": "Your mixed recipes have no master weights, so 'mixed' seems to take "
        "12 bytes a parameter. With them it takes 16: 4 more for the float32 copy that the "
        "optimizer updates.",
        "master_weights_everywhere": "Your 'fp32' has master weights, which makes 20 bytes a "
        "parameter. Its weights are float32 already, so no second copy is needed: 16 bytes.",
        "master_weights_in_bf16_too": "Your 'bf16' has master weights. This recipe keeps "
        "everything in bfloat16, with no copy: 8 bytes a parameter.",
        "moments_in_16_bits": "Your mixed recipes keep the moments in 16 bits, so 'mixed' seems to "
        "take 12 bytes a parameter. Only weights and gradients are 16-bit there: 16 bytes.",
        "moments_always_float32": "Your 'bf16' keeps the moments in float32, which makes 12 bytes "
        "a parameter. There they are in bfloat16, 2 bytes each: 8 bytes.",
        "gradients_like_weights": "Your 'mixed_fp32_grads' has 16-bit gradients, so it takes 16 "
        "bytes a parameter. Its gradients are in float32: 18 bytes.",
        "gradients_always_float32": "Your gradients are always float32, so 'mixed' takes 18 bytes "
        "a parameter. In 'mixed' and 'bf16' they have 16 bits like the weights.",
        "momentum_in_sgd": "Your 'sgd' keeps a momentum. Plain SGD remembers nothing: both "
        "moments are 0.",
        "moments_in_sgd": "Your 'sgd' keeps Adam's moments. Plain SGD remembers nothing.",
        "absent_left_out": "Your dict leaves out what a recipe does not have. Give all five keys, "
        "with 0 there, so that two recipes can be compared key by key.",
        "bits": "Your sizes are in bits; give bytes, of 8 bits each.",
    },
)
