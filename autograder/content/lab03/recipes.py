"""bytes_per_parameter and largest_model: what a recipe keeps, and how many parameters fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from autograder.content.one_at_a_time import one_at_a_time
from autograder.model.compare import by_reference, same, whole
from autograder.model.task import Case, Task

__all__ = ["bytes_per_parameter", "largest_model"]

_KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")

_RECIPES: Mapping[str, tuple[int, ...]] = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


_UNKNOWN = ["fp16", "MIXED", "", "mixed_fp16", "my_sgd", "mixed-fp32-grads"]
# These begin or end with a recipe's name, or have a space around it.
_UNKNOWN += ["fp32_adam", "my_fp32", "bf16_adam", "pure_bf16", "sgd_momentum", " mixed", "sgd "]
_LOUD = {"ValueError", "KeyError"}  # a dict's own KeyError reports a misspelt recipe just as well


def _unknown_alike(equal: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return `equal`, extended so that all errors that may report an unknown recipe are equal."""

    def alike(expected: Any, got: Any) -> bool:
        if isinstance(expected, str) and isinstance(got, str):
            return expected == got or {expected, got} <= _LOUD
        return equal(expected, got)

    return alike


# bytes_per_parameter


def _sizes(recipe: str) -> dict[str, int]:
    if recipe not in _RECIPES:
        raise ValueError(f"no such recipe: {recipe}")
    return dict(zip(_KEYS, _RECIPES[recipe], strict=True))


def _but(wrong: Mapping[str, tuple[int, ...]]) -> Callable[[str], dict[str, int]]:
    """The reference, except for some recipes."""
    table = {**_RECIPES, **wrong}
    return lambda recipe: dict(zip(_KEYS, table[recipe], strict=True))


def _cases(rng: np.random.Generator) -> list[Case]:
    names = [str(name) for name in rng.permutation(list(_RECIPES))]
    return [
        # Each once more: an answer must not use up a table that outlives the call.
        Case(("value",), {"calls": [[name] for name in (*names, *names)]}),
        Case(("value",), {"calls": [[name] for name in _UNKNOWN]}),
    ]


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
            "unknown_recipe_none": lambda r: _sizes(r) if r in _RECIPES else None,
            "unknown_recipe_taken": lambda r: _sizes(r if r in _RECIPES else "sgd"),
        },
        equal=_unknown_alike(same),
        write=lambda recipe: f"bytes_per_parameter({recipe!r})",
    ),
    mistakes={
        "no_master_weights": "Your mixed recipes have no master weights, so your 'mixed' takes 12 "
        "bytes per parameter. It takes 16: add 4 bytes for the float32 copy that the optimizer "
        "updates.",
        "master_weights_everywhere": "Your 'fp32' has master weights and takes 20 bytes per "
        "parameter. Its weights are already float32, so it needs no second copy: 16 bytes.",
        "master_weights_in_bf16_too": "Your 'bf16' has master weights. This recipe keeps "
        "everything in bfloat16, with no copy: 8 bytes per parameter.",
        "moments_in_16_bits": "Your mixed recipes keep the moments in 16 bits, so your 'mixed' "
        "takes 12 bytes per parameter. Only weights and gradients are 16-bit there: 16 bytes.",
        "moments_always_float32": "Your 'bf16' keeps the moments in float32 and takes 12 bytes "
        "per parameter. Its moments are in bfloat16, 2 bytes each: 8 bytes.",
        "gradients_like_weights": "Your 'mixed_fp32_grads' has 16-bit gradients, so it takes 16 "
        "bytes per parameter. Its gradients are in float32: 18 bytes.",
        "gradients_always_float32": "Your gradients are always float32, so your 'mixed' takes 18 "
        "bytes per parameter. In 'mixed' and 'bf16', gradients have 16 bits like the weights.",
        "momentum_in_sgd": "Your 'sgd' keeps momentum. Plain SGD has no state: both moments are 0.",
        "moments_in_sgd": "Your 'sgd' keeps Adam's moments. Plain SGD has no state.",
        "absent_left_out": "Your dict leaves out keys that a recipe doesn't use. Include all "
        "five, with 0 for a missing part, so that recipes can be compared key by key.",
        "bits": "Your sizes are in bits; return bytes, of 8 bits each.",
        "unknown_recipe_none": "Raise ValueError for an unknown recipe; your function returns "
        "None.",
        "unknown_recipe_taken": "Raise ValueError for an unknown recipe; your function treats it "
        "as 'sgd', so a misspelt name silently gives a wrong size.",
    },
)


# largest_model


def _largest(recipe: str, budget_bytes: int, activation_bytes: int) -> int:
    return _filled(sum(_sizes(recipe).values()), budget_bytes - activation_bytes)


def _filled(each_bytes: int, left_bytes: int) -> int:
    return max(0, left_bytes) // each_bytes


def _always(each_bytes: int) -> Callable[[str, int, int], int]:
    """Counts the same bytes per parameter for every recipe."""
    return lambda recipe, budget, activations: _filled(each_bytes, budget - activations)


def _largest_cases(rng: np.random.Generator) -> list[Case]:
    def call(recipe: str) -> list[object]:
        activations = int(rng.integers(10**9, 30 * 10**9))
        return [recipe, activations + int(rng.integers(10**9, 150 * 10**9)), activations]

    drawn = [call(recipe) for recipe in _RECIPES]
    too_small = ["mixed", 10**9, 10**9 + int(rng.integers(100, 10**9))]
    edges = [[r, 10**6 + 7 * sum(_RECIPES[r]) + d, 10**6] for r in _RECIPES for d in (-1, 0, 1)]
    edges.append(["sgd", 8 * 10**17 - 1, 0])  # a quotient that no float tells from 10**17
    edges += one_at_a_time(["fp32", 10**6, 10**5], {0: "mixed", 1: 10**7, 2: 10**4})
    edges += [[r, 100 + n, 100] for r, sizes in _RECIPES.items() for n in (1, sum(sizes))]
    return [
        Case(("value",), {"calls": drawn}),
        Case(("value",), {"calls": [*drawn, too_small]}),
        Case(("value",), {"calls": edges + [[r, 100, 100] for r in _RECIPES]}, fixed=True),
        # Known recipes too, to tell one size for all unknown recipes from one size for all recipes.
        Case(("value",), {"calls": [[name, 1000, 100] for name in (*_RECIPES, *_UNKNOWN)]}),
    ]


largest_model = Task(
    id="lab03-largest_model",
    parts={"value": 1},
    defines=("largest_model",),
    probe="largest_model",
    cases=_largest_cases,
    judge=by_reference(
        _largest,
        {
            "always_8_bytes": _always(8),
            "always_12_bytes": _always(12),
            "always_16_bytes": _always(16),
            "always_18_bytes": _always(18),
            "always_20_bytes": _always(20),
            "weights_only": lambda recipe, b, a: _filled(_RECIPES.get(recipe, (2,))[0], b - a),
            "activations_forgotten": lambda recipe, b, a: _filled(sum(_RECIPES[recipe]), b),
            "activations_added": lambda recipe, b, a: _filled(sum(_RECIPES[recipe]), b + a),
            "rounded_up": lambda recipe, b, a: -(-max(0, b - a) // sum(_RECIPES[recipe])),
            "divides_apart": lambda recipe, b, a: max(
                0, b // sum(_RECIPES[recipe]) - a // sum(_RECIPES[recipe])
            ),
            "divides_floats": lambda recipe, b, a: int(max(0, b - a) / sum(_RECIPES[recipe])),
            "negative": lambda recipe, b, a: (b - a) // sum(_RECIPES[recipe]),
            "not_whole": lambda recipe, b, a: max(0, b - a) / sum(_RECIPES[recipe]),
            "gb_taken_for_gib": lambda recipe, b, a: _filled(
                sum(_RECIPES[recipe]), (b - a) * 2**30 // 10**9
            ),
            "gib_taken_for_gb": lambda recipe, b, a: _filled(
                sum(_RECIPES[recipe]), (b - a) * 10**9 // 2**30
            ),
        },
        equal=_unknown_alike(whole()),
        write=lambda recipe, b, a: f"largest_model({recipe!r}, {b}, {a})",
    ),
    mistakes={
        "always_8_bytes": "Your result takes 8 bytes per parameter for every recipe. Add up the "
        "given recipe's five sizes.",
        "always_12_bytes": "Your result takes 12 bytes per parameter for every recipe: the "
        "moments and one copy, without weights and gradients. Add up the given recipe's five "
        "sizes.",
        "always_16_bytes": "Your result takes 16 bytes per parameter for every recipe. That is "
        "correct for 'fp32' and 'mixed'; add up the given recipe's five sizes.",
        "always_18_bytes": "Your result takes 18 bytes per parameter for every recipe: that is "
        "'mixed_fp32_grads'. Add up the given recipe's five sizes.",
        "always_20_bytes": "Your result takes 20 bytes per parameter for every recipe: float32 "
        "training with a master copy that it doesn't need. Add up the given recipe's five sizes.",
        "weights_only": "Your result counts the weights alone. Training needs gradients and the "
        "optimizer's state as well.",
        "activations_forgotten": "Your result gives the whole budget to the parameters. Subtract "
        "the activations first.",
        "activations_added": "Your result adds the activations to the budget. Subtract them.",
        "rounded_up": "You round up, so the last parameter doesn't fit. Round down.",
        "divides_apart": "You divide the budget and the activations separately, and round twice. "
        "Subtract first, then divide.",
        "negative": "If the activations alone exceed the budget, the answer is 0.",
        "divides_floats": "You divide with /, and floats above 2**53 can't represent every "
        "integer. Divide with //.",
        "not_whole": "Return a whole number of parameters: round down with //.",
        "gb_taken_for_gib": "Your result treats GB (10**9 bytes) as GiB (2**30 bytes). The inputs "
        "are already in bytes; don't convert them.",
        "gib_taken_for_gb": "Your result treats GiB (2**30 bytes) as GB (10**9 bytes). The inputs "
        "are already in bytes; don't convert them.",
    },
)
