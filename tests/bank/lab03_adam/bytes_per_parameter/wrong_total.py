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
