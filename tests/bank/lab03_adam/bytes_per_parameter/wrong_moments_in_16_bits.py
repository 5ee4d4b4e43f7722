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
