"""Forgets the activations."""

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    return budget_bytes // BYTES[recipe]
