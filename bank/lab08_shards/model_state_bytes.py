# %% right: by_comparison
"""Each part by a comparison."""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    shared = -(-n_params // world)
    weights, gradients, optimizer = sizes
    return {
        "weights": weights * (shared if stage >= 3 else n_params),
        "gradients": gradients * (shared if stage >= 2 else n_params),
        "optimizer": optimizer * (shared if stage >= 1 else n_params),
    }


# %% right: in_a_loop
"""By math.ceil, in a loop; shares of less than 2^53 are exact."""

import math


def model_state_bytes(n_params, world, stage, recipe):
    found = {}
    for first, name, mixed, fp32 in (
        (3, "weights", 2, 4),
        (2, "gradients", 2, 4),
        (1, "optimizer", 12, 8),
    ):
        elements = math.ceil(n_params / world) if stage >= first else n_params
        found[name] = elements * (mixed if recipe == "mixed" else fp32)
    return found


# %% right: by_divmod
"""The rest is added."""


def model_state_bytes(n_params, world, stage, recipe):
    whole, rest = divmod(n_params, world)
    share = whole + (rest > 0)
    size = 2 if recipe == "mixed" else 4
    counts = [share if stage > n else n_params for n in range(3)]
    return {
        "optimizer": counts[0] * (12 if recipe == "mixed" else 8),
        "gradients": counts[1] * size,
        "weights": counts[2] * size,
    }


# %% wrong: rounded_down
"""Shares are rounded down. [earns 0]"""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    shared = n_params // world
    weights, gradients, optimizer = sizes
    return {
        "weights": weights * (shared if stage >= 3 else n_params),
        "gradients": gradients * (shared if stage >= 2 else n_params),
        "optimizer": optimizer * (shared if stage >= 1 else n_params),
    }


# %% wrong: not_rounded
"""Shares are fractions. [earns 0]"""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    shared = n_params / world
    weights, gradients, optimizer = sizes
    return {
        "weights": weights * (shared if stage >= 3 else n_params),
        "gradients": gradients * (shared if stage >= 2 else n_params),
        "optimizer": optimizer * (shared if stage >= 1 else n_params),
    }


# %% wrong: bytes_rounded_up
"""Bytes are rounded up, not elements. [earns 0]"""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    names = ("weights", "gradients", "optimizer")
    return {
        name: -(-size * n_params // world) if stage >= first else size * n_params
        for name, size, first in zip(names, sizes, (3, 2, 1))
    }


# %% wrong: stages_reversed
"""Weights are shared first. [earns 0]"""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    shared = -(-n_params // world)
    weights, gradients, optimizer = sizes
    return {
        "weights": weights * (shared if stage >= 1 else n_params),
        "gradients": gradients * (shared if stage >= 2 else n_params),
        "optimizer": optimizer * (shared if stage >= 3 else n_params),
    }


# %% wrong: stage_early
"""One stage early. [earns 0]"""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    shared = -(-n_params // world)
    weights, gradients, optimizer = sizes
    return {
        "weights": weights * (shared if stage >= 2 else n_params),
        "gradients": gradients * (shared if stage >= 1 else n_params),
        "optimizer": optimizer * (shared if stage >= 0 else n_params),
    }


# %% wrong: stage_late
"""One stage late. [earns 0]"""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    shared = -(-n_params // world)
    weights, gradients, optimizer = sizes
    return {
        "weights": weights * (shared if stage >= 4 else n_params),
        "gradients": gradients * (shared if stage >= 3 else n_params),
        "optimizer": optimizer * (shared if stage >= 2 else n_params),
    }


# %% wrong: one_part_a_stage
"""Each stage shares one part. [earns 0]"""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    shared = -(-n_params // world)
    weights, gradients, optimizer = sizes
    return {
        "weights": weights * (shared if stage == 3 else n_params),
        "gradients": gradients * (shared if stage == 2 else n_params),
        "optimizer": optimizer * (shared if stage == 1 else n_params),
    }


# %% wrong: no_master_weights
"""Two moments only. [earns 0]"""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = {"mixed": (2, 2, 8), "fp32": (4, 4, 8)}[recipe]
    shared = -(-n_params // world)
    weights, gradients, optimizer = sizes
    return {
        "weights": weights * (shared if stage >= 3 else n_params),
        "gradients": gradients * (shared if stage >= 2 else n_params),
        "optimizer": optimizer * (shared if stage >= 1 else n_params),
    }


# %% wrong: never_shared
"""Stages do nothing. [earns 0]"""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    weights, gradients, optimizer = sizes
    return {
        "weights": weights * (n_params),
        "gradients": gradients * (n_params),
        "optimizer": optimizer * (n_params),
    }


# %% wrong: recipe_ignored
"""Always mixed. [earns 0]"""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = (2, 2, 12)
    shared = -(-n_params // world)
    weights, gradients, optimizer = sizes
    return {
        "weights": weights * (shared if stage >= 3 else n_params),
        "gradients": gradients * (shared if stage >= 2 else n_params),
        "optimizer": optimizer * (shared if stage >= 1 else n_params),
    }


# %% wrong: elements
"""Counts of elements. [earns 0]"""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = {"mixed": (1, 1, 1), "fp32": (1, 1, 1)}[recipe]
    shared = -(-n_params // world)
    weights, gradients, optimizer = sizes
    return {
        "weights": weights * (shared if stage >= 3 else n_params),
        "gradients": gradients * (shared if stage >= 2 else n_params),
        "optimizer": optimizer * (shared if stage >= 1 else n_params),
    }


# %% right: recursive
"""Stage by stage, recursively."""


def model_state_bytes(n_params, world, stage, recipe):
    sizes = dict(mixed=(2, 2, 12), fp32=(4, 4, 8))[recipe]
    share = (n_params + world - 1) // world
    if stage == 0:
        return dict(zip(("weights", "gradients", "optimizer"), (s * n_params for s in sizes)))
    held = model_state_bytes(n_params, world, stage - 1, recipe)
    name = (None, "optimizer", "gradients", "weights")[stage]
    held[name] = share * sizes[("weights", "gradients", "optimizer").index(name)]
    return held


# %% right: numpy_array
"""An array of three, numpy integers."""

import numpy as np


def model_state_bytes(n_params, world, stage, recipe):
    per = np.array([2, 2, 12] if recipe == "mixed" else [4, 4, 8], dtype=np.int64)
    shared = np.arange(3) >= 3 - stage
    count = np.where(shared, -(-n_params // world), n_params)
    return dict(zip(["weights", "gradients", "optimizer"], per * count))


# %% right: match_case
"""match, keyword names in any order."""


def model_state_bytes(n_params, world, stage, recipe):
    match recipe:
        case "mixed":
            w, g, o = 2, 2, 12
        case "fp32":
            w, g, o = 4, 4, 8
        case _:
            raise ValueError(recipe)
    s = n_params // world + bool(n_params % world)
    full = n_params
    return {
        "optimizer": o * (s if stage else full),
        "gradients": g * (s if stage > 1 else full),
        "weights": w * (s if stage > 2 else full),
    }


# %% wrong: one_more
"""n // world + 1, wrong where the world divides."""


def model_state_bytes(n_params, world, stage, recipe):
    w, g, o = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    share = n_params // world + 1
    return {
        "weights": w * (share if stage >= 3 else n_params),
        "gradients": g * (share if stage >= 2 else n_params),
        "optimizer": o * (share if stage >= 1 else n_params),
    }


# %% wrong: master_weights_not_shared
"""Mixed precision's master weights stay whole at stages 1 and 2."""


def model_state_bytes(n_params, world, stage, recipe):
    share = -(-n_params // world)
    s = lambda from_: share if stage >= from_ else n_params
    if recipe == "mixed":
        return {"weights": 2 * s(3), "gradients": 2 * s(2), "optimizer": 4 * s(3) + 8 * s(1)}
    return {"weights": 4 * s(3), "gradients": 4 * s(2), "optimizer": 8 * s(1)}


# %% wrong: cached_by_stage
"""A table shared between calls, by stage and recipe only."""

_seen = {}


def model_state_bytes(n_params, world, stage, recipe):
    if (stage, recipe) not in _seen:
        w, g, o = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
        share = -(-n_params // world)
        _seen[stage, recipe] = {
            "weights": w * (share if stage >= 3 else n_params),
            "gradients": g * (share if stage >= 2 else n_params),
            "optimizer": o * (share if stage >= 1 else n_params),
        }
    return _seen[stage, recipe]


# %% wrong: few_parameters_whole
"""Whole where there are fewer parameters than ranks."""


def model_state_bytes(n_params, world, stage, recipe):
    w, g, o = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    share = -(-n_params // world) if n_params >= world else n_params
    return {
        "weights": w * (share if stage >= 3 else n_params),
        "gradients": g * (share if stage >= 2 else n_params),
        "optimizer": o * (share if stage >= 1 else n_params),
    }


# %% wrong: int32_overflow
"""32-bit integers overflow."""

import numpy as np


def model_state_bytes(n_params, world, stage, recipe):
    sizes = np.array({"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe], dtype=np.int32)
    share = -(-n_params // world)
    n = np.array([share if stage >= f else n_params for f in (3, 2, 1)]).astype(np.int32)
    return dict(zip(("weights", "gradients", "optimizer"), sizes * n))


# %% wrong: rounded_through_float32
"""The share is rounded up in float32."""

import torch


def model_state_bytes(n_params, world, stage, recipe):
    sizes = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    share = int(torch.ceil(torch.tensor(float(n_params)) / world))
    return {n: s * (share if stage >= f else n_params) for n, s, f in zip(("weights", "gradients", "optimizer"), sizes, (3, 2, 1))}


# %% wrong: nothing_on_one_rank
"""Takes a share of one rank for no share at all."""


def model_state_bytes(n_params, world, stage, recipe):
    weights, gradients, optimizer = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    share = -(-n_params // world) if world > 1 else 0
    return {
        "weights": weights * (share if stage >= 3 else n_params),
        "gradients": gradients * (share if stage >= 2 else n_params),
        "optimizer": optimizer * (share if stage >= 1 else n_params),
    }


# %% right: decimals
"""Decimal with ROUND_CEILING."""

from decimal import ROUND_CEILING, Decimal


def model_state_bytes(n_params, world, stage, recipe):
    share = int((Decimal(n_params) / Decimal(world)).to_integral_value(ROUND_CEILING))
    sizes = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    names = ["weights", "gradients", "optimizer"]
    return {n: s * (n_params, share)[stage > 2 - i] for i, (n, s) in enumerate(zip(names, sizes))}


# %% wrong: cached_without_recipe
"""Remembers shares by everything but the recipe."""

_seen = {}


def model_state_bytes(n_params, world, stage, recipe):
    key = n_params, world, stage
    if key not in _seen:
        w, g, o = (2, 2, 12) if recipe == "mixed" else (4, 4, 8)
        share = -(-n_params // world)
        _seen[key] = {
            "weights": w * (share if stage == 3 else n_params),
            "gradients": g * (share if stage >= 2 else n_params),
            "optimizer": o * (share if stage >= 1 else n_params),
        }
    return _seen[key]


# %% wrong: cached_without_world
"""Remembers by parameters, stage and recipe."""

_seen = {}


def model_state_bytes(n_params, world, stage, recipe):
    key = n_params, recipe, stage
    if key not in _seen:
        w, g, o = (2, 2, 12) if recipe == "mixed" else (4, 4, 8)
        share = -(-n_params // world)
        _seen[key] = {
            "weights": w * (share if stage == 3 else n_params),
            "gradients": g * (share if stage >= 2 else n_params),
            "optimizer": o * (share if stage >= 1 else n_params),
        }
    return _seen[key]
