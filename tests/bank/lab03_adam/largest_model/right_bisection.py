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
