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
