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
