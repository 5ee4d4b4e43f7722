# %% right: formats
"""By way of torch's dtypes."""
import torch


def bytes_per_parameter(recipe):
    if recipe not in ("fp32", "mixed", "mixed_fp32_grads", "bf16", "sgd"):
        raise ValueError(recipe)
    full, half = torch.float32, torch.bfloat16
    weights = full if recipe in ("fp32", "sgd") else half
    grads = full if recipe in ("fp32", "sgd", "mixed_fp32_grads") else half
    master = full if recipe.startswith("mixed") else None
    moments = {"sgd": None, "bf16": half}.get(recipe, full)
    formats = [weights, grads, master, moments, moments]
    names = ["weights", "gradients", "master_weights", "first_moment", "second_moment"]
    return {name: f.itemsize if f else 0 for name, f in zip(names, formats)}


# %% right: if_chain
"""One branch a recipe, sizes as numpy integers."""
import numpy as np


def bytes_per_parameter(recipe):
    if recipe == "fp32":
        w, g, c, m = 4, 4, 0, 4
    elif recipe == "mixed":
        w, g, c, m = 2, 2, 4, 4
    elif recipe == "mixed_fp32_grads":
        w, g, c, m = 2, 4, 4, 4
    elif recipe == "bf16":
        w, g, c, m = 2, 2, 0, 2
    elif recipe == "sgd":
        w, g, c, m = 4, 4, 0, 0
    else:
        raise ValueError(f"unknown recipe {recipe!r}")
    w, g, c, m = map(np.int64, (w, g, c, m))
    return {"weights": w, "gradients": g, "master_weights": c, "first_moment": m, "second_moment": m}


# %% right: numpy
"""Item sizes by numpy, collected in a dict that is filled step by step."""
import numpy as np


def bytes_per_parameter(recipe):
    if recipe not in {"fp32", "mixed", "mixed_fp32_grads", "bf16", "sgd"}:
        raise ValueError(recipe)
    short = np.dtype("float16").itemsize
    long = np.dtype("float32").itemsize
    out = dict(weights=long, gradients=long, master_weights=0, first_moment=long, second_moment=long)
    if recipe == "sgd":
        out["first_moment"] = out["second_moment"] = 0
    if recipe == "bf16":
        out = {key: short if value else 0 for key, value in out.items()}
    if "mixed" in recipe:
        out["weights"] = short
        out["master_weights"] = long
        if recipe == "mixed":
            out["gradients"] = short
    return out


# %% right: table
"""A table of sizes."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    return dict(zip(KEYS, TABLE[recipe]))


# %% wrong: absent_left_out
"""Has no key where there is nothing."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    return {k: v for k, v in zip(KEYS, TABLE[recipe]) if v}


# %% wrong: bits
"""Counts in bits."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    return {k: 8 * v for k, v in zip(KEYS, TABLE[recipe])}


# %% wrong: gradients_always_float32
"""Takes gradients for float32 everywhere."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 4, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 4, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    return dict(zip(KEYS, TABLE[recipe]))


# %% wrong: gradients_like_weights
"""Gives gradients the format of the weights."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 2, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    return dict(zip(KEYS, TABLE[recipe]))


# %% wrong: master_weights_everywhere
"""Gives float32 weights a float32 copy."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 4, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    return dict(zip(KEYS, TABLE[recipe]))


# %% wrong: master_weights_in_bf16_too
"""Takes every 16-bit recipe for one with masters."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 4, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    return dict(zip(KEYS, TABLE[recipe]))


# %% wrong: moments_always_float32
"""Takes moments for float32 everywhere."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 4, 4),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    return dict(zip(KEYS, TABLE[recipe]))


# %% wrong: moments_in_16_bits
"""Halves everything but the masters."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 2, 2),
    "mixed_fp32_grads": (2, 4, 4, 2, 2),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    return dict(zip(KEYS, TABLE[recipe]))


# %% wrong: moments_in_sgd
"""Takes SGD for Adam."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 4, 4),
}


def bytes_per_parameter(recipe):
    return dict(zip(KEYS, TABLE[recipe]))


# %% wrong: momentum_in_sgd
"""Thinks that SGD has a momentum."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 4, 0),
}


def bytes_per_parameter(recipe):
    return dict(zip(KEYS, TABLE[recipe]))


# %% wrong: no_master_weights
"""Forgets the float32 copy."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 0, 4, 4),
    "mixed_fp32_grads": (2, 4, 0, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    return dict(zip(KEYS, TABLE[recipe]))


# %% wrong: total
"""Returns the sum."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    return sum(TABLE[recipe])


# %% wrong: unknown_recipe_none
"""Knows nothing of an unknown recipe, and says so with None."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    if recipe in TABLE:
        return dict(zip(KEYS, TABLE[recipe]))


# %% wrong: unknown_recipe_taken
"""Its last branch takes whatever is left."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")


def bytes_per_parameter(recipe):
    if recipe == "fp32":
        sizes = (4, 4, 0, 4, 4)
    elif recipe == "mixed":
        sizes = (2, 2, 4, 4, 4)
    elif recipe == "mixed_fp32_grads":
        sizes = (2, 4, 4, 4, 4)
    elif recipe == "bf16":
        sizes = (2, 2, 0, 2, 2)
    else:
        sizes = (4, 4, 0, 0, 0)
    return dict(zip(KEYS, sizes))


# %% right: counter
"""A Counter, with explicit zeros."""
from collections import Counter


def bytes_per_parameter(recipe):
    table = {"fp32": "44044", "mixed": "22444", "mixed_fp32_grads": "24444", "bf16": "22022", "sgd": "44000"}
    names = "weights gradients master_weights first_moment second_moment".split()
    return Counter(dict(zip(names, map(int, table[recipe]))))


# %% wrong: prefix
"""Goes by the beginnings of names, so 'mixed_int8' passes."""


def bytes_per_parameter(recipe):
    if recipe.startswith("mixed_fp32"):
        sizes = (2, 4, 4, 4, 4)
    elif recipe.startswith("mixed"):
        sizes = (2, 2, 4, 4, 4)
    elif recipe.startswith("fp32"):
        sizes = (4, 4, 0, 4, 4)
    elif recipe.startswith("bf16"):
        sizes = (2, 2, 0, 2, 2)
    elif recipe.startswith("sgd"):
        sizes = (4, 4, 0, 0, 0)
    else:
        raise ValueError(recipe)
    return dict(zip(("weights", "gradients", "master_weights", "first_moment", "second_moment"), sizes))


# %% wrong: strips_spaces
"""Takes spaces around a name for nothing."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
TABLE = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    return dict(zip(KEYS, TABLE[recipe.strip()]))


# %% wrong: some_prefixes
"""Compares the names of mixed recipes, and the others' beginnings."""

KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")


def bytes_per_parameter(recipe):
    if recipe == "mixed":
        sizes = (2, 2, 4, 4, 4)
    elif recipe == "mixed_fp32_grads":
        sizes = (2, 4, 4, 4, 4)
    elif recipe.startswith("bf16"):
        sizes = (2, 2, 0, 2, 2)
    elif recipe.startswith("fp32"):
        sizes = (4, 4, 0, 4, 4)
    elif recipe.startswith("sgd"):
        sizes = (4, 4, 0, 0, 0)
    else:
        raise ValueError(recipe)
    return dict(zip(KEYS, sizes))


# %% wrong: dashes
"""Takes a dash in a name for an underscore."""

SIZES = {
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


def bytes_per_parameter(recipe):
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    return dict(zip(keys, SIZES[recipe.replace("-", "_")]))

# %% wrong: table_used_up
"""Pops from a shared table: the second call fails."""


_TABLE = {"fp32": (4, 4, 0, 4, 4), "mixed": (2, 2, 4, 4, 4), "mixed_fp32_grads": (2, 4, 4, 4, 4), "bf16": (2, 2, 0, 2, 2), "sgd": (4, 4, 0, 0, 0)}
def bytes_per_parameter(recipe: str) -> dict:
    return dict(zip(["weights", "gradients", "master_weights", "first_moment", "second_moment"], _TABLE.pop(recipe)))
