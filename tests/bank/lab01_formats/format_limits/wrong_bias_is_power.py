"""Takes 2**(e - 1) for the bias, and the largest exponent field for 2**e - 2 less it. [earns 0.5]"""

def format_limits(e, m):
    bias = 2 ** (e - 1)
    return {
        "max": (2 - 2.0**-m) * 2.0 ** (2**e - 2 - bias),
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": 2.0 ** (1 - bias - m),
        "epsilon": 2.0**-m,
    }
