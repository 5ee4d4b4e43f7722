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
