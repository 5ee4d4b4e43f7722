"""numpy's scalars, and a whole number where a limit is one."""
import numpy as np


def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    epsilon = np.ldexp(np.float64(1), -mantissa_bits)
    largest = np.ldexp(2 - epsilon, bias)
    return {
        "max": int(largest) if largest == int(largest) else largest,
        "min_normal": np.exp2(np.float64(1 - bias)),
        "min_subnormal": np.ldexp(1.0, 1 - bias - mantissa_bits),
        "epsilon": epsilon,
    }
