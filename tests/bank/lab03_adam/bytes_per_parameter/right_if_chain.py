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
    else:
        w, g, c, m = 4, 4, 0, 0
    w, g, c, m = map(np.int64, (w, g, c, m))
    return {"weights": w, "gradients": g, "master_weights": c, "first_moment": m, "second_moment": m}
