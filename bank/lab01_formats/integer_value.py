# %% right: numpy
"""A dictionary of functions, and numpy's integers."""

import numpy as np

READ = {
    "unsigned": lambda bits, width: np.uint64(bits),
    "sign-magnitude": lambda bits, width: (
        np.int64(1 - 2 * (bits >> (width - 1))) * np.int64(bits & ((1 << (width - 1)) - 1))
    ),
    "twos-complement": lambda bits, width: (
        np.int64(bits) - (np.int64(bits >> (width - 1)) << width)
    ),
}


def integer_value(bits, width, encoding):
    if encoding not in READ:
        raise ValueError("unknown encoding")
    return READ[encoding](bits, width)


# %% right: thresholds
"""Compares with half the range."""


def integer_value(bits: int, width: int, encoding: str) -> int:
    half = 2 ** (width - 1)
    if encoding == "unsigned":
        return bits
    if encoding == "sign-magnitude":
        return bits if bits < half else half - bits
    if encoding == "twos-complement":
        return bits if bits < half else bits - 2 * half
    raise ValueError(encoding)


# %% right: weights
"""A loop over the digits, each with its worth."""


def integer_value(bits, width, encoding):
    digits = [int(digit) for digit in format(bits, f"0{width}b")]
    worth = [2**i for i in reversed(range(width))]
    if encoding == "twos-complement":
        worth[0] = -worth[0]
    elif encoding == "sign-magnitude":
        worth[0] = 0
    elif encoding != "unsigned":
        raise ValueError(f"unknown encoding {encoding}")
    total = sum(w * d for w, d in zip(worth, digits))
    return -total if encoding == "sign-magnitude" and digits[0] else total


# %% right: xor
"""Two's complement by xor with the sign bit, and match."""


def integer_value(bits, width, encoding):
    sign = 1 << (width - 1)
    match encoding:
        case "unsigned":
            return bits
        case "sign-magnitude":
            magnitude = bits & ~sign
            return -magnitude if bits & sign else magnitude
        case "twos-complement":
            return (bits ^ sign) - sign
        case _:
            raise ValueError(encoding)


# %% wrong: always_8_bits
"""Has 128 and 256 in it instead of the width."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    if encoding == "sign-magnitude":
        return 128 - bits if bits & 128 else bits
    if encoding == "twos-complement":
        return bits - 256 if bits & 128 else bits
    raise ValueError(encoding)


# %% wrong: known_widths_only
"""A sign bit by a table of widths, any other width taken for the next."""

SIGN = {8: 0x80, 16: 0x8000, 32: 0x80000000}


def integer_value(bits, width, encoding):
    if encoding not in ("unsigned", "sign-magnitude", "twos-complement"):
        raise ValueError(encoding)
    sign = SIGN[min(known for known in SIGN if known >= width)]
    if encoding == "unsigned" or not bits & sign:
        return bits
    return -(bits - sign) if encoding == "sign-magnitude" else bits - 2 * sign


# %% wrong: ones_complement
"""Flips the bits and forgets the one."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding == "sign-magnitude":
        return -(bits - 2 ** (width - 1)) if negative else bits
    if encoding == "twos-complement":
        return -(~bits & (2**width - 1)) if negative else bits
    raise ValueError(encoding)


# %% wrong: returns_float
"""Returns floats: the weights are powers of 2.0."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding == "sign-magnitude":
        return 2.0 ** (width - 1) - bits if negative else float(bits)
    if encoding == "twos-complement":
        return bits - 2.0**width if negative else float(bits)
    raise ValueError(encoding)


# %% wrong: sign_bit_counted
"""Negates all bits, the sign bit with them."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding == "sign-magnitude":
        return -bits if negative else bits
    if encoding == "twos-complement":
        return bits - 2**width if negative else bits
    raise ValueError(encoding)


# %% wrong: sign_magnitude_as_twos
"""One formula for both signed encodings: two's complement."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding in ("sign-magnitude", "twos-complement"):
        return bits - 2**width if negative else bits
    raise ValueError(encoding)


# %% wrong: twos_as_sign_magnitude
"""One formula for both signed encodings: sign, then magnitude."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding in ("sign-magnitude", "twos-complement"):
        return -(bits - 2 ** (width - 1)) if negative else bits
    raise ValueError(encoding)


# %% wrong: unknown_encoding_none
"""Falls off the end without a word."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding == "sign-magnitude":
        return -(bits - 2 ** (width - 1)) if negative else bits
    if encoding == "twos-complement":
        return bits - 2**width if negative else bits


# %% wrong: unknown_encoding_taken
"""Whatever is not the first two is taken for two's complement."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding == "sign-magnitude":
        return -(bits - 2 ** (width - 1)) if negative else bits
    return bits - 2**width if negative else bits


# %% wrong: widths_of_a_table
"""KeyError for a width that is not 8, 16 or 32."""

MODULUS = {8: 2**8, 16: 2**16, 32: 2**32}


def integer_value(bits, width, encoding):
    modulus = MODULUS[width]
    negative = bits >= modulus // 2
    if encoding == "unsigned":
        return bits
    if encoding == "sign-magnitude":
        return modulus // 2 - bits if negative else bits
    if encoding == "twos-complement":
        return bits - modulus if negative else bits
    raise ValueError(encoding)


# %% right: ctypes
"""Shifts the sign into a C integer's highest bit, and back."""
import ctypes


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    if encoding == "twos-complement":
        return ctypes.c_int64(bits << (64 - width)).value >> (64 - width)
    if encoding == "sign-magnitude":
        top = 1 << (width - 1)
        return -(bits ^ top) if bits & top else bits
    raise ValueError(encoding)


# %% wrong: ends_of_names
"""Goes by the ends of the encodings' names, so "magnitude" is taken too."""


def integer_value(bits, width, encoding):
    sign = bits >> (width - 1)
    if encoding.endswith("magnitude"):
        return (1 << width - 1) - bits if sign else bits
    if encoding.startswith("twos"):
        return bits - (sign << width)
    if encoding == "unsigned":
        return bits
    raise ValueError(encoding)


# %% wrong: checked_late
"""Looks at the encoding's name only where the highest bit is 0."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    sign = bits >> (width - 1)
    if encoding == "sign-magnitude":
        return (1 << width - 1) - bits if sign else bits
    if sign:
        return bits - (1 << width)
    if encoding != "twos-complement":
        raise ValueError(encoding)
    return bits


# %% wrong: through_float
"""Powers of 2.0, rounded back to an integer: doubles have 53 bits."""


def integer_value(bits, width, encoding):
    if encoding not in ("unsigned", "sign-magnitude", "twos-complement"):
        raise ValueError(encoding)
    half = 2.0 ** (width - 1)
    if encoding == "unsigned" or bits < half:
        return int(float(bits))
    return int(half - bits if encoding == "sign-magnitude" else bits - 2 * half)


# %% wrong: any_spelling
"""Takes encodings in any case and with quotes and spaces."""


def integer_value(bits, width, encoding):
    encoding = encoding.lower().replace("'", "").replace(" ", "-")
    if encoding not in ("unsigned", "sign-magnitude", "twos-complement"):
        raise ValueError(encoding)
    half = 1 << (width - 1)
    if encoding == "unsigned" or bits < half:
        return bits
    return half - bits if encoding == "sign-magnitude" else bits - 2 * half


# %% wrong: beginnings_of_names
"""Goes by the beginnings of the encodings' names, so "unsigned int" is taken too."""


def integer_value(bits, width, encoding):
    half = 1 << (width - 1)
    if encoding.startswith("unsigned"):
        return bits
    if encoding.startswith("sign-"):
        return bits if bits < half else half - bits
    if encoding.startswith("twos-"):
        return bits if bits < half else bits - 2 * half
    raise ValueError(encoding)


# %% wrong: other_separators
"""Takes underscores for hyphens."""


def integer_value(bits, width, encoding):
    half = 1 << (width - 1)
    match encoding.replace("_", "-"):
        case "unsigned":
            return bits
        case "sign-magnitude":
            return bits if bits < half else half - bits
        case "twos-complement":
            return bits if bits < half else bits - 2 * half
    raise ValueError(encoding)


# %% right: slices_of_bits
"""Takes the highest bit off, and looks its worth up in a dict."""


def integer_value(bits, width, encoding):
    half = 1 << (width - 1)
    top, rest = divmod(bits, half)
    worth = {
        "unsigned": rest + top * half,
        "sign-magnitude": -rest if top else rest,
        "twos-complement": rest - top * half,
    }
    try:
        return worth[encoding]
    except KeyError:
        raise ValueError(encoding) from None


# %% right: digits_after_the_sign
"""Reads the digits after the first one, the sign."""


def integer_value(bits, width, encoding):
    digits = f"{bits:0{width}b}"
    match encoding:
        case "unsigned":
            return int(digits, 2)
        case "sign-magnitude":
            return int(digits[1:], 2) * (1 - 2 * int(digits[0]))
        case "twos-complement":
            return int(digits[1:], 2) - (int(digits[0]) << width - 1)
    raise ValueError(encoding)


# %% right: reached_by_steps
"""Counts in a cycle: an Enum of the names, and the remainder shifted by half a turn."""
from enum import Enum


class Encoding(Enum):
    UNSIGNED = "unsigned"
    SIGN_MAGNITUDE = "sign-magnitude"
    TWOS_COMPLEMENT = "twos-complement"


def integer_value(bits, width, encoding):
    kind = Encoding(encoding)
    half = 2 ** (width - 1)
    if kind is Encoding.UNSIGNED:
        return bits
    if kind is Encoding.TWOS_COMPLEMENT:
        return (bits + half) % (2 * half) - half
    return (bits % half) * (-1) ** (bits // half)
