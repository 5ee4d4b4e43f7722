"""Starts the normal numbers at exponent field 0. [earns 1]"""

def format_limits(e, m):
    bias = 2 ** (e - 1) - 1
    return {
        "max": (2 - 2.0**-m) * 2.0**bias,
        "min_normal": 2.0**-bias,
        "min_subnormal": 2.0 ** (-bias - m),
        "epsilon": 2.0**-m,
    }
