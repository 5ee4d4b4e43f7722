"""Exercise: bytes of model states per rank, for each stage of ZeRO."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.model.compare import by_reference, whole
from autograder.model.task import Case, Task

__all__ = ["model_state_bytes"]

_PARTS = ("weights", "gradients", "optimizer")
_BYTES = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}


def _states(
    n_params: int,
    world: int,
    stage: int,
    recipe: str,
    *,
    first_shared: tuple[int, int, int] = (3, 2, 1),
    share: Callable[[int, int, int], float] = lambda n, size, world: size * -(-n // world),
    sizes: dict[str, tuple[int, int, int]] = _BYTES,
) -> dict[str, float]:
    """Bytes per rank if each part is sharded from some stage on; options are mistakes."""
    parts = zip(_PARTS, sizes[recipe], first_shared, strict=True)
    return {
        name: share(n_params, size, world) if stage >= first else size * n_params
        for name, size, first in parts
    }


def _but(**options: Any) -> Callable[..., dict[str, float]]:
    return lambda *arguments: _states(*arguments, **options)


_MUTANTS: dict[str, Callable[..., Any]] = {
    "rounded_down": _but(share=lambda n, size, world: size * (n // world)),
    "bytes_rounded_up": _but(share=lambda n, size, world: -(-size * n // world)),
    "not_rounded": _but(share=lambda n, size, world: size * (n / world)),
    "never_shared": _but(share=lambda n, size, world: size * n),
    "stages_reversed": _but(first_shared=(1, 2, 3)),
    "stage_late": lambda n, world, stage, recipe: _states(n, world, max(0, stage - 1), recipe),
    "stage_early": lambda n, world, stage, recipe: _states(n, world, stage + 1, recipe),
    "one_part_a_stage": lambda n, world, stage, recipe: {
        name: size * (-(-n // world) if stage == first else n)
        for name, size, first in zip(_PARTS, _BYTES[recipe], (3, 2, 1), strict=True)
    },
    "no_master_weights": _but(sizes={"mixed": (2, 2, 8), "fp32": (4, 4, 8)}),
    "recipe_ignored": lambda n, world, stage, recipe: _states(n, world, stage, "mixed"),
    "elements": _but(sizes={"mixed": (1, 1, 1), "fp32": (1, 1, 1)}),
}


def _cases(rng: np.random.Generator) -> list[Case]:
    def call(stage: int, recipe: str) -> list[Any]:
        world = int(rng.integers(3, 65))
        n_params = world * int(rng.integers(1000, 10**8)) + int(rng.integers(1, world))
        return [n_params, world, stage, recipe]

    drawn = [call(stage, recipe) for recipe in _BYTES for stage in range(4)]
    # ZeRO's figure 1, one rank alone, and more ranks than parameters.
    fixed = [[7_500_000_000, 64, stage, "mixed"] for stage in range(4)]
    fixed += [[1001, 1, stage, "fp32"] for stage in range(4)]
    fixed += [[3, 8, stage, "mixed"] for stage in range(4)]
    # Each call differs from another in one argument.
    n_params, world, *_ = drawn[0]
    both = [[n, w] for n in (n_params, n_params + 1) for w in (world, world + 1)]
    again = [[*two, stage, recipe] for two in both for recipe in _BYTES for stage in range(4)]
    return [
        *(Case(("value",), {"calls": [one]}) for one in drawn),
        Case(("value",), {"calls": [*drawn, *again]}),
        Case(
            ("value",),
            {"calls": fixed},
            fixed=True,
            about="one rank is alone, or there are more ranks than parameters, or billions of "
            "parameters.",
        ),
    ]


model_state_bytes = Task(
    id="lab08-model_state_bytes",
    parts={"value": 2},
    defines=("model_state_bytes",),
    probe="model_state_bytes",
    cases=_cases,
    judge=by_reference(
        _states, _MUTANTS, equal=whole(), write=lambda *a: f"model_state_bytes{tuple(a)}"
    ),
    mistakes={
        "rounded_down": "Round shares up, or no rank holds the remainder. Divide with "
        "-(-n // world).",
        "bytes_rounded_up": "Round the number of elements up, then multiply by the bytes of each.",
        "not_rounded": "A rank holds whole elements: round its share up.",
        "never_shared": "From stage 1 on, divide the optimizer's part by world; from stage 2 on, "
        "the gradients too; in stage 3, everything.",
        "stages_reversed": "Stage 1 shards the optimizer, which is the largest part; weights come "
        "last.",
        "stage_late": "Stage 1 shards the optimizer already; only stage 0 shards nothing.",
        "stage_early": "You shard one part too many: stage 1 shards only the optimizer.",
        "one_part_a_stage": "Each stage shards everything the earlier stages shard, and one more "
        "part.",
        "no_master_weights": "In mixed precision the optimizer has 12 bytes per parameter: master "
        "weights and two moments, 4 bytes each.",
        "recipe_ignored": "The bytes depend on the recipe: fp32 has 4, 4 and 8.",
        "elements": "You return numbers of elements. Multiply by the recipe's bytes.",
    },
)
