"""numpy's integers, and a Fraction that is rounded up."""
import math
from fractions import Fraction

import numpy as np


def weight_bytes(n_params, dtype):
    match dtype:
        case "fp64":
            size = Fraction(8)
        case "fp32":
            size = Fraction(4)
        case "fp16" | "bf16":
            size = Fraction(2)
        case "fp8" | "int8":
            size = Fraction(1)
        case "int4":
            size = Fraction(1, 2)
        case _:
            raise ValueError("unknown dtype")
    return np.int64(math.ceil(n_params * size))
