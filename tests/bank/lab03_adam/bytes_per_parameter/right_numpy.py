"""Item sizes by numpy, collected in a dict that is filled step by step."""
import numpy as np


def bytes_per_parameter(recipe):
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
