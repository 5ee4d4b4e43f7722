# %% right: digits
"""A loop over the digits and what each is worth."""


def fixed_point_value(bits, width, fraction_bits):
    total = 0.0
    for place in range(width):
        if bits >> place & 1:
            worth = 2.0 ** (place - fraction_bits)
            total += -worth if place == width - 1 else worth
    return total


# %% right: divides
"""The integer, divided by a power of two."""


def fixed_point_value(bits: int, width: int, fraction_bits: int) -> float:
    signed = bits - (1 << width) if bits >> (width - 1) else bits
    return signed / 2**fraction_bits


# %% right: ldexp
"""numpy's ldexp; returns a numpy scalar."""
import numpy as np


def fixed_point_value(bits, width, fraction_bits):
    signed = np.int64(bits) - np.where(bits >= 2 ** (width - 1), np.int64(2) ** width, 0)
    return np.ldexp(np.float64(signed), -fraction_bits)


# %% right: two_parts
"""Whole part and fraction apart; floor division rounds down, so the fraction is added."""


def fixed_point_value(bits, width, fraction_bits):
    sign = 1 << (width - 1)
    whole, fraction = divmod((bits ^ sign) - sign, 1 << fraction_bits)
    return whole + fraction / (1 << fraction_bits)


# %% wrong: always_8_bits
"""Has 256 in it instead of the width."""


def fixed_point_value(bits, width, fraction_bits):
    return (bits - 256 if bits & 128 else bits) / 2**fraction_bits


# %% wrong: decimal_point
"""Moves a decimal point."""


def fixed_point_value(bits, width, fraction_bits):
    signed = bits - (1 << width) if bits >> (width - 1) else bits
    return signed / 10**fraction_bits


# %% wrong: fraction_dropped
"""Shifts instead of dividing."""


def fixed_point_value(bits, width, fraction_bits):
    signed = bits - (1 << width) if bits >> (width - 1) else bits
    return float(signed >> fraction_bits)


# %% wrong: integer_bits_as_fraction
"""Takes fraction_bits for the bits before the point."""


def fixed_point_value(bits, width, fraction_bits):
    signed = bits - (1 << width) if bits >> (width - 1) else bits
    return signed / 2 ** (width - fraction_bits)


# %% wrong: scaled_up
"""Multiplies by 2**fraction_bits."""


def fixed_point_value(bits, width, fraction_bits):
    signed = bits - (1 << width) if bits >> (width - 1) else bits
    return float(signed * 2**fraction_bits)


# %% wrong: sign_magnitude
"""Reads sign and magnitude."""


def fixed_point_value(bits, width, fraction_bits):
    sign = -1 if bits >> (width - 1) else 1
    return sign * (bits & ((1 << (width - 1)) - 1)) / 2**fraction_bits


# %% wrong: unsigned
"""No sign at all."""


def fixed_point_value(bits, width, fraction_bits):
    return bits * 2.0**-fraction_bits


# %% wrong: in_float32
"""Computes in float32, which 24 bits are too few for."""
import numpy as np


def fixed_point_value(bits, width, fraction_bits):
    value = bits - ((bits >> (width - 1)) << width)
    return float(np.float32(value) / np.float32(2**fraction_bits))


# %% wrong: known_widths
"""Takes any other width for the next of C's integers."""


def fixed_point_value(bits, width, fraction_bits):
    width = 8 if width <= 8 else 16 if width <= 16 else 32
    return (bits - (bits >> (width - 1) << width)) / 2**fraction_bits


# %% wrong: slices_of_digits
"""Cuts the digits at -fraction_bits, which is the front if there is none."""


def fixed_point_value(bits, width, fraction_bits):
    digits = f"{bits:0{width}b}"
    whole, fraction = digits[:-fraction_bits], digits[-fraction_bits:]
    weight = 2 ** len(whole) if whole and whole[0] == "1" else 0
    return int(whole or "0", 2) - weight + int(fraction, 2) / 2**fraction_bits


# %% wrong: no_sign_without_integer_bits
"""Where all bits are fraction bits, it sees no sign."""


def fixed_point_value(bits, width, fraction_bits):
    if fraction_bits >= width:
        return bits / 2**fraction_bits
    return (bits - (bits >> width - 1 << width)) / 2**fraction_bits


# %% right: digits_after_the_sign
"""Reads the digits after the first one, the sign."""


def fixed_point_value(bits, width, fraction_bits):
    digits = f"{bits:0{width}b}"
    return (int(digits[1:], 2) - (int(digits[0]) << width - 1)) / 2**fraction_bits


# %% wrong: kept_without_the_width
"""Keeps results by pattern and fraction bits, whatever the width."""
known = {}


def fixed_point_value(bits, width, fraction_bits):
    key = bits, fraction_bits
    if key not in known:
        half = 1 << width - 1
        known[key] = ((bits ^ half) - half) / 2**fraction_bits
    return known[key]
