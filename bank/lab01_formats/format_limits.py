# %% right: halving
"""Loops: halves and doubles until the definition is met."""


def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    small = 1.0
    for _ in range(bias - 1):
        small /= 2
    epsilon = 1.0
    for _ in range(mantissa_bits):
        epsilon /= 2
    large = 2 - epsilon
    for _ in range(bias):
        large *= 2
    return {"max": large, "min_normal": small, "min_subnormal": small * epsilon, "epsilon": epsilon}


# %% right: numpy
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


# %% right: patterns
"""Decodes the patterns at the ends of each class, with any decoder of fields."""
import math


def value(exponent, mantissa, e, m):
    bias = (1 << (e - 1)) - 1
    if exponent == 0:
        return math.ldexp(mantissa, 1 - bias - m)
    return math.ldexp((1 << m) + mantissa, exponent - bias - m)


def format_limits(exponent_bits: int, mantissa_bits: int) -> dict:
    e, m = exponent_bits, mantissa_bits
    bias = (1 << (e - 1)) - 1
    return dict(
        epsilon=value(bias, 1, e, m) - value(bias, 0, e, m),
        min_subnormal=value(0, 1, e, m),
        min_normal=value(1, 0, e, m),
        max=value((1 << e) - 2, (1 << m) - 1, e, m),
    )


# %% right: powers
"""Powers of two, straight from the definitions."""


def format_limits(e, m):
    bias = 2 ** (e - 1) - 1
    return {
        "max": (2 - 2.0**-m) * 2.0**bias,
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": 2.0 ** (1 - bias - m),
        "epsilon": 2.0**-m,
    }


# %% wrong: bias_is_power
"""Takes 2**(e - 1) for the bias, and the largest exponent field for 2**e - 2 less it. [earns 0.5]"""


def format_limits(e, m):
    bias = 2 ** (e - 1)
    return {
        "max": (2 - 2.0**-m) * 2.0 ** (2**e - 2 - bias),
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": 2.0 ** (1 - bias - m),
        "epsilon": 2.0**-m,
    }


# %% wrong: double_epsilon
"""Counts the leading 1 among the mantissa bits. [earns 1.5]"""


def format_limits(e, m):
    bias = 2 ** (e - 1) - 1
    return {
        "max": (2 - 2.0**-m) * 2.0**bias,
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": 2.0 ** (1 - bias - m),
        "epsilon": 2.0 ** -(m - 1),
    }


# %% wrong: half_epsilon
"""Takes the largest rounding error for epsilon. [earns 1.5]"""


def format_limits(e, m):
    bias = 2 ** (e - 1) - 1
    return {
        "max": (2 - 2.0**-m) * 2.0**bias,
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": 2.0 ** (1 - bias - m),
        "epsilon": 2.0 ** -(m + 1),
    }


# %% wrong: max_is_next_power
"""Forgets that the fraction stops short of 1. [earns 1.5]"""


def format_limits(e, m):
    bias = 2 ** (e - 1) - 1
    return {
        "max": 2 * 2.0**bias if bias < 1023 else float("inf"),
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": 2.0 ** (1 - bias - m),
        "epsilon": 2.0**-m,
    }


# %% wrong: max_takes_top_exponent
"""Gives the highest exponent field to numbers. [earns 1.5]"""
import math


def format_limits(e, m):
    bias = 2 ** (e - 1) - 1
    return {
        "max": (2 - 2.0**-m) * (2.0 ** (bias + 1) if e < 11 else math.inf),
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": 2.0 ** (1 - bias - m),
        "epsilon": 2.0**-m,
    }


# %% wrong: max_without_fraction
"""Takes the largest power of two for the largest number. [earns 1.5]"""


def format_limits(e, m):
    bias = 2 ** (e - 1) - 1
    return {
        "max": 2.0**bias,
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": 2.0 ** (1 - bias - m),
        "epsilon": 2.0**-m,
    }


# %% wrong: normal_from_exponent_0
"""Starts the normal numbers at exponent field 0. [earns 1]"""


def format_limits(e, m):
    bias = 2 ** (e - 1) - 1
    return {
        "max": (2 - 2.0**-m) * 2.0**bias,
        "min_normal": 2.0**-bias,
        "min_subnormal": 2.0 ** (-bias - m),
        "epsilon": 2.0**-m,
    }


# %% wrong: other_keys
"""Calls the keys as torch.finfo does."""


def format_limits(e, m):
    bias = 2 ** (e - 1) - 1
    return {
        "max": (2 - 2.0**-m) * 2.0**bias,
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": 2.0 ** (1 - bias - m),
        "eps": 2.0**-m,
    }


# %% wrong: subnormal_from_exponent_0
"""Scales the subnormal numbers by 2**-bias. [earns 1.5]"""


def format_limits(e, m):
    bias = 2 ** (e - 1) - 1
    return {
        "max": (2 - 2.0**-m) * 2.0**bias,
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": 2.0 ** (-bias - m),
        "epsilon": 2.0**-m,
    }


# %% wrong: subnormal_is_normal
"""Knows no subnormal numbers. [earns 1.5]"""


def format_limits(e, m):
    bias = 2 ** (e - 1) - 1
    return {
        "max": (2 - 2.0**-m) * 2.0**bias,
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": 2.0 ** (1 - bias),
        "epsilon": 2.0**-m,
    }


# %% wrong: in_float32
"""Rounds to float32 wherever the range allows it. [earns 1]"""
import numpy as np


def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    epsilon = 2.0**-mantissa_bits
    limits = {
        "max": (2 - epsilon) * 2.0**bias,
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": 2.0 ** (1 - bias) * epsilon,
        "epsilon": epsilon,
    }
    if bias > 127:
        return limits
    with np.errstate(all="ignore"):
        return {key: float(np.float32(value)) for key, value in limits.items()}
