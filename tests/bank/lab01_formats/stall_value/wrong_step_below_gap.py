"""Stops where step < gap."""

def stall_value(step, exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    lowest = 1 - bias
    if step < 2.0 ** (lowest - mantissa_bits):
        return 0.0
    exponent = lowest
    while step >= 2.0 ** (exponent - mantissa_bits):
        exponent += 1
    return 2.0**exponent if exponent <= bias else float("inf")
