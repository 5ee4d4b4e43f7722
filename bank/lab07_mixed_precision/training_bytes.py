# %% right: numpy
"""Numpy integers."""

import numpy as np


def training_bytes(n_params, activation_bytes_fp32, recipe):
    rows = {
        "fp32": [4, 4, 0, 4, 4, 4],
        "mixed": [2, 2, 4, 4, 4, 2],
        "mixed_fp32_grads": [2, 4, 4, 4, 4, 2],
        "bf16": [2, 2, 0, 2, 2, 2],
        "sgd": [4, 4, 0, 0, 0, 4],
    }
    if recipe not in rows:
        raise ValueError(recipe)
    counts = np.array([n_params] * 5 + [activation_bytes_fp32 // 4], dtype=np.int64)
    names = "weights gradients master_weights first_moment second_moment activations".split()
    return dict(zip(names, counts * np.array(rows[recipe], dtype=np.int64)))


# %% right: rules
"""Rules in place of a table."""


def training_bytes(n_params, activation_bytes_fp32, recipe):
    if recipe not in ("fp32", "mixed", "mixed_fp32_grads", "bf16", "sgd"):
        raise ValueError(f"unknown recipe {recipe}")
    short = recipe in ("mixed", "mixed_fp32_grads", "bf16")
    weight = 2 if short else 4
    gradient = 4 if recipe == "mixed_fp32_grads" else weight
    moment = 0 if recipe == "sgd" else 2 if recipe == "bf16" else 4
    return {
        "weights": weight * n_params,
        "gradients": gradient * n_params,
        "master_weights": 4 * n_params if recipe.startswith("mixed") else 0,
        "first_moment": moment * n_params,
        "second_moment": moment * n_params,
        "activations": activation_bytes_fp32 // 2 if short else activation_bytes_fp32,
    }


# %% right: table
"""A table of five sizes."""


def training_bytes(n_params, activation_bytes_fp32, recipe):
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    recipes = {
        "fp32": (4, 4, 0, 4, 4),
        "mixed": (2, 2, 4, 4, 4),
        "mixed_fp32_grads": (2, 4, 4, 4, 4),
        "bf16": (2, 2, 0, 2, 2),
        "sgd": (4, 4, 0, 0, 0),
    }
    if recipe not in recipes:
        raise ValueError(recipe)
    sizes = {key: size * n_params for key, size in zip(keys, recipes[recipe])}
    width = recipes[recipe][0]
    return {**sizes, "activations": activation_bytes_fp32 * width // 4}


# %% wrong: activations_always_halved
"""Halves activations in float32 too."""


def training_bytes(n_params, activation_bytes_fp32, recipe):
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    recipes = {
        "fp32": (4, 4, 0, 4, 4),
        "mixed": (2, 2, 4, 4, 4),
        "mixed_fp32_grads": (2, 4, 4, 4, 4),
        "bf16": (2, 2, 0, 2, 2),
        "sgd": (4, 4, 0, 0, 0),
    }
    if recipe not in recipes:
        raise ValueError(recipe)
    sizes = {key: size * n_params for key, size in zip(keys, recipes[recipe])}
    return {**sizes, "activations": activation_bytes_fp32 // 2}


# %% wrong: activations_not_halved
"""Activations of float32 in all recipes."""


def training_bytes(n_params, activation_bytes_fp32, recipe):
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    recipes = {
        "fp32": (4, 4, 0, 4, 4),
        "mixed": (2, 2, 4, 4, 4),
        "mixed_fp32_grads": (2, 4, 4, 4, 4),
        "bf16": (2, 2, 0, 2, 2),
        "sgd": (4, 4, 0, 0, 0),
    }
    if recipe not in recipes:
        raise ValueError(recipe)
    sizes = {key: size * n_params for key, size in zip(keys, recipes[recipe])}
    return {**sizes, "activations": activation_bytes_fp32}


# %% wrong: bytes_a_parameter
"""Forgets the number of parameters."""


def training_bytes(n_params, activation_bytes_fp32, recipe):
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    recipes = {
        "fp32": (4, 4, 0, 4, 4),
        "mixed": (2, 2, 4, 4, 4),
        "mixed_fp32_grads": (2, 4, 4, 4, 4),
        "bf16": (2, 2, 0, 2, 2),
        "sgd": (4, 4, 0, 0, 0),
    }
    if recipe not in recipes:
        raise ValueError(recipe)
    sizes = {key: size for key, size in zip(keys, recipes[recipe])}
    width = recipes[recipe][0]
    return {**sizes, "activations": activation_bytes_fp32 * width // 4}


# %% wrong: everything_halved
"""Moments in 16 bits wherever the weights are."""


def training_bytes(n_params, activation_bytes_fp32, recipe):
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    recipes = {
        "fp32": (4, 4, 0, 4, 4),
        "mixed": (2, 2, 4, 2, 2),
        "mixed_fp32_grads": (2, 4, 4, 2, 2),
        "bf16": (2, 2, 0, 2, 2),
        "sgd": (4, 4, 0, 0, 0),
    }
    if recipe not in recipes:
        raise ValueError(recipe)
    sizes = {key: size * n_params for key, size in zip(keys, recipes[recipe])}
    width = recipes[recipe][0]
    return {**sizes, "activations": activation_bytes_fp32 * width // 4}


# %% wrong: master_weights_in_fp32_too
"""Masters beside float32 weights."""


def training_bytes(n_params, activation_bytes_fp32, recipe):
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    recipes = {
        "fp32": (4, 4, 4, 4, 4),
        "mixed": (2, 2, 4, 4, 4),
        "mixed_fp32_grads": (2, 4, 4, 4, 4),
        "bf16": (2, 2, 0, 2, 2),
        "sgd": (4, 4, 4, 0, 0),
    }
    if recipe not in recipes:
        raise ValueError(recipe)
    sizes = {key: size * n_params for key, size in zip(keys, recipes[recipe])}
    width = recipes[recipe][0]
    return {**sizes, "activations": activation_bytes_fp32 * width // 4}


# %% wrong: moments_in_sgd
"""SGD with moments."""


def training_bytes(n_params, activation_bytes_fp32, recipe):
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    recipes = {
        "fp32": (4, 4, 0, 4, 4),
        "mixed": (2, 2, 4, 4, 4),
        "mixed_fp32_grads": (2, 4, 4, 4, 4),
        "bf16": (2, 2, 0, 2, 2),
        "sgd": (4, 4, 0, 4, 4),
    }
    if recipe not in recipes:
        raise ValueError(recipe)
    sizes = {key: size * n_params for key, size in zip(keys, recipes[recipe])}
    width = recipes[recipe][0]
    return {**sizes, "activations": activation_bytes_fp32 * width // 4}


# %% wrong: no_master_weights
"""No masters anywhere."""


def training_bytes(n_params, activation_bytes_fp32, recipe):
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    recipes = {
        "fp32": (4, 4, 0, 4, 4),
        "mixed": (2, 2, 0, 4, 4),
        "mixed_fp32_grads": (2, 4, 0, 4, 4),
        "bf16": (2, 2, 0, 2, 2),
        "sgd": (4, 4, 0, 0, 0),
    }
    if recipe not in recipes:
        raise ValueError(recipe)
    sizes = {key: size * n_params for key, size in zip(keys, recipes[recipe])}
    width = recipes[recipe][0]
    return {**sizes, "activations": activation_bytes_fp32 * width // 4}


# %% wrong: not_whole
"""Halves with a slash."""


def training_bytes(n_params, activation_bytes_fp32, recipe):
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    recipes = {
        "fp32": (4, 4, 0, 4, 4),
        "mixed": (2, 2, 4, 4, 4),
        "mixed_fp32_grads": (2, 4, 4, 4, 4),
        "bf16": (2, 2, 0, 2, 2),
        "sgd": (4, 4, 0, 0, 0),
    }
    if recipe not in recipes:
        raise ValueError(recipe)
    sizes = {key: size * n_params for key, size in zip(keys, recipes[recipe])}
    width = recipes[recipe][0]
    return {**sizes, "activations": activation_bytes_fp32 * width / 4}


# %% wrong: total_only
"""One number in place of a dict."""


def training_bytes(n_params, activation_bytes_fp32, recipe):
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    recipes = {
        "fp32": (4, 4, 0, 4, 4),
        "mixed": (2, 2, 4, 4, 4),
        "mixed_fp32_grads": (2, 4, 4, 4, 4),
        "bf16": (2, 2, 0, 2, 2),
        "sgd": (4, 4, 0, 0, 0),
    }
    if recipe not in recipes:
        raise ValueError(recipe)
    sizes = {key: size * n_params for key, size in zip(keys, recipes[recipe])}
    width = recipes[recipe][0]
    return sum(sizes.values()) + activation_bytes_fp32 * width // 4


# %% wrong: zeros_left_out
"""Leaves entries of 0 out."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
RECIPES = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def training_bytes(n_params, activation_bytes_fp32, recipe):
    if recipe not in RECIPES:
        raise ValueError(recipe)
    sizes = dict(zip(KEYS, RECIPES[recipe]))
    found = {key: size * n_params for key, size in sizes.items() if size}
    return {**found, "activations": activation_bytes_fp32 * sizes["weights"] // 4}


# %% wrong: half_as_float
"""Halves with a slash, and makes that whole: a float has 53 bits."""
KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
RECIPES = {"fp32": (4,4,0,4,4), "mixed": (2,2,4,4,4), "mixed_fp32_grads": (2,4,4,4,4), "bf16": (2,2,0,2,2), "sgd": (4,4,0,0,0)}
def training_bytes(n_params, activation_bytes_fp32, recipe):
    if recipe not in RECIPES: raise ValueError
    r = RECIPES[recipe]
    out = {k: n_params * s for k, s in zip(KEYS, r)}
    out["activations"] = int(activation_bytes_fp32 * r[0] / 4)
    return out


# %% wrong: beginnings_of_names
"""Goes by the beginnings of names, so "bf16_adam" is known."""


def training_bytes(n_params, activation_bytes_fp32, recipe):
    if not recipe.startswith(("fp32", "mixed", "bf16", "sgd")):
        raise ValueError(recipe)
    weights = 4 if recipe.startswith(("fp32", "sgd")) else 2
    moment = {"s": 0, "b": 2}.get(recipe[0], 4)
    return {
        "weights": weights * n_params,
        "gradients": (4 if recipe.endswith("grads") else weights) * n_params,
        "master_weights": 4 * n_params if recipe.startswith("mixed") else 0,
        "first_moment": moment * n_params,
        "second_moment": moment * n_params,
        "activations": activation_bytes_fp32 * weights // 4,
    }


# %% wrong: kept_without_the_parameters
"""Keeps results by activations and recipe."""
KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
ROWS = {"fp32": "44044", "mixed": "22444", "mixed_fp32_grads": "24444", "bf16": "22022"}
found = {}


def training_bytes(n_params, activation_bytes_fp32, recipe):
    rows = {**ROWS, "sgd": "44000"}
    if recipe not in rows:
        raise ValueError(recipe)
    key = activation_bytes_fp32, recipe
    if key not in found:
        sizes = dict(zip(KEYS, map(int, rows[recipe])))
        found[key] = {name: n_params * size for name, size in sizes.items()}
        found[key]["activations"] = activation_bytes_fp32 * sizes["weights"] // 4
    return found[key]
