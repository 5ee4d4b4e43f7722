# %% right: bisection
"""Searches for the largest that fits."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    low, high = 0, budget_bytes + 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle * BYTES[recipe] + activation_bytes <= budget_bytes:
            low = middle
        else:
            high = middle
    return low


# %% right: divmod
"""The quotient of divmod."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    if activation_bytes > budget_bytes:
        return 0
    return divmod(budget_bytes - activation_bytes, BYTES[recipe])[0]


# %% right: numpy
"""Numpy's integers."""

import numpy as np

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    left = np.int64(budget_bytes) - np.int64(activation_bytes)
    return np.maximum(left, 0) // np.int64(BYTES[recipe])


# %% right: table
"""Whole division, clipped afterwards."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return max((budget_bytes - activation_bytes) // BYTES[recipe], 0)


# %% wrong: activations_added
"""Has a wrong sign."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return (budget_bytes + activation_bytes) // BYTES[recipe]


# %% wrong: activations_forgotten
"""Forgets the activations."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return budget_bytes // BYTES[recipe]


# %% wrong: always_12_bytes
"""Takes 12 bytes for every recipe."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return max(0, budget_bytes - activation_bytes) // 12


# %% wrong: always_16_bytes
"""Takes 16 bytes for every recipe."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return max(0, budget_bytes - activation_bytes) // 16


# %% wrong: always_18_bytes
"""Takes 18 bytes for every recipe."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return max(0, budget_bytes - activation_bytes) // 18


# %% wrong: always_20_bytes
"""Takes 20 bytes for every recipe."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return max(0, budget_bytes - activation_bytes) // 20


# %% wrong: always_8_bytes
"""Takes 8 bytes for every recipe."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return max(0, budget_bytes - activation_bytes) // 8


# %% wrong: gb_taken_for_gib
"""Multiplies by GiB over GB."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return max(0, budget_bytes - activation_bytes) * 2**30 // 10**9 // BYTES[recipe]


# %% wrong: gib_taken_for_gb
"""Multiplies by GB over GiB."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return max(0, budget_bytes - activation_bytes) * 10**9 // 2**30 // BYTES[recipe]


# %% wrong: in_billions
"""Returns billions of parameters."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return max(0, budget_bytes - activation_bytes) // BYTES[recipe] // 10**9


# %% wrong: negative
"""Lets the number go below zero."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return (budget_bytes - activation_bytes) // BYTES[recipe]


# %% wrong: not_whole
"""Divides with a fraction."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return max(0, budget_bytes - activation_bytes) / BYTES[recipe]


# %% wrong: rounded_up
"""Rounds up."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return -(-max(0, budget_bytes - activation_bytes) // BYTES[recipe])


# %% wrong: weights_only
"""Counts the weights alone."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return max(0, budget_bytes - activation_bytes) // (4 if recipe in ('fp32', 'sgd') else 2)


# %% wrong: divides_floats
"""int(left / each): a float can't tell the quotient from the next whole number."""


def largest_model(recipe, budget_bytes, activation_bytes):
    each = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}[recipe]
    return max(0, int((budget_bytes - activation_bytes) / each))


# %% right: long_division
"""Long division in base 2."""
SIZES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    each = SIZES[recipe]
    left = budget_bytes - activation_bytes
    count, power = 0, 1
    while power * each <= left:
        power *= 2
    while power:
        if (count + power) * each <= left:
            count += power
        power //= 2
    return count


# %% wrong: unknown_as_fp32
"""fp32 for an unknown recipe."""


def largest_model(recipe, budget_bytes, activation_bytes):
    each = dict(fp32=16, mixed=16, mixed_fp32_grads=18, bf16=8, sgd=8).get(recipe, 16)
    return max(0, budget_bytes - activation_bytes) // each


# %% wrong: divides_apart
"""Divides first, then subtracts."""


def largest_model(recipe, budget_bytes, activation_bytes):
    each = dict(fp32=16, mixed=16, mixed_fp32_grads=18, bf16=8, sgd=8)[recipe]
    return max(0, budget_bytes // each - activation_bytes // each)


# %% wrong: more_than_one
"""Asks for room for more than one parameter."""
EACH = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    left = budget_bytes - activation_bytes
    return left // EACH[recipe] if left > EACH[recipe] else 0


# %% wrong: at_least_one
"""Finds room for one parameter wherever a byte is left."""
EACH = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    left = budget_bytes - activation_bytes
    return max(1, left // EACH[recipe]) if left > 0 else 0 * EACH[recipe]


# %% wrong: some_prefixes
"""Goes by the beginnings of names other than mixed."""


def largest_model(recipe, budget_bytes, activation_bytes):
    left = max(0, budget_bytes - activation_bytes)
    if recipe == "mixed":
        return left // 16
    for name, size in (("mixed_fp32_grads", 18), ("sgd", 8), ("fp32", 16), ("bf16", 8)):
        if recipe.startswith(name):
            return left // size
    raise ValueError(recipe)


# %% wrong: kept_without_the_activations
"""Keeps results by recipe and budget, whatever the activations."""
known = {}
BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    key = recipe, budget_bytes
    if key not in known:
        known[key] = max(0, budget_bytes - activation_bytes) // BYTES[recipe]
    return known[key]
