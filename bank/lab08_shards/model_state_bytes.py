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
