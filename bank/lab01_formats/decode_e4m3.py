# %% right: fields
"""Fields by shifts and masks."""
import math


def decode_e4m3(bits: int) -> float:
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    if exponent == 15 and mantissa == 7:
        return math.nan
    if exponent == 0:
        return sign * math.ldexp(mantissa, -9)
    return sign * math.ldexp(8 + mantissa, exponent - 10)


# %% right: strings
"""Cuts the pattern as text."""


def decode_e4m3(bits):
    text = f"{bits:08b}"
    if text[1:] == "1111111":
        return float("nan")
    exponent = int(text[1:5], 2)
    hidden = 1 if exponent > 0 else 0
    significand = hidden + sum(2.0**-i for i in (1, 2, 3) if text[4 + i] == "1")
    return (-1.0) ** int(text[0]) * significand * 2.0 ** (max(exponent, 1) - 7)


# %% right: table
"""A table of all 256 values, made by counting up in gaps."""
import numpy as np

table = []
value, gap = 0.0, 2.0**-9
for pattern in range(128):
    table.append(value)
    if pattern >= 16 and pattern % 8 == 0:
        gap *= 2
    value += gap
table[127] = np.nan
table += [-value for value in table]


def decode_e4m3(bits):
    return table[bits]


# %% right: through_float64
"""Moves the fields into a float64 by integer views."""
import numpy as np


def decode_e4m3(bits):
    magnitude = bits & 0x7F
    if magnitude == 0x7F:
        return float("nan")
    if magnitude < 8:
        value = magnitude * 2.0**-9
    else:
        value = np.array((magnitude << 49) + (1016 << 52), np.uint64).view(np.float64)[()]
    return np.copysign(value, 1 - 2.0 * (bits >> 7))


# %% wrong: as_e5m2
"""Splits the bits as the other 8-bit format does."""
import math


def decode_e4m3(bits):
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 2 & 0x1F, bits & 0x3
    if exponent == 31:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa / 4 * 2.0**-14
    return sign * (1 + mantissa / 4) * 2.0 ** (exponent - 15)


# %% wrong: bias_8
"""Takes 2**3 for the bias."""
import math


def decode_e4m3(bits):
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    if exponent == 15 and mantissa == 7:
        return math.nan
    if exponent == 0:
        return sign * mantissa / 8 * 2.0 ** (1 - 8)
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 8)


# %% wrong: inf_as_ieee
"""Exponent field 15 as in IEEE formats: infinity and NaN."""
import math


def decode_e4m3(bits):
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    if exponent == 15:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa / 8 * 2.0**-6
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)


# %% wrong: lets_torch_do_it
"""Lets torch read the bits, which is not allowed."""
import torch


def decode_e4m3(bits):
    return torch.tensor(bits, dtype=torch.uint8).view(torch.float8_e4m3fn).float().item()


# %% wrong: nan_missing
"""Has numbers only."""


def decode_e4m3(bits):
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    if exponent == 0:
        return sign * mantissa / 8 * 2.0**-6
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)


# %% wrong: negative_zero_lost
"""Returns 0.0 for both zeros."""
import math


def decode_e4m3(bits):
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    if bits in (0x00, 0x80):
        return 0.0
    if exponent == 15 and mantissa == 7:
        return math.nan
    if exponent == 0:
        return sign * mantissa / 8 * 2.0**-6
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)


# %% wrong: sign_lost
"""Never looks at bit 7."""
import math


def decode_e4m3(bits):
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    if exponent == 15 and mantissa == 7:
        return math.nan
    if exponent == 0:
        return mantissa / 8 * 2.0**-6
    return (1 + mantissa / 8) * 2.0 ** (exponent - 7)


# %% wrong: subnormal_as_normal
"""Knows zero, but no subnormal numbers."""
import math


def decode_e4m3(bits):
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    if exponent == 15 and mantissa == 7:
        return math.nan
    if bits & 0x7F == 0:
        return sign * 0.0
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)


# %% wrong: subnormal_by_7
"""Goes on with E - 7 at E = 0."""
import math


def decode_e4m3(bits):
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    if exponent == 15 and mantissa == 7:
        return math.nan
    hidden = 1 if exponent else 0
    return sign * (hidden + mantissa / 8) * 2.0 ** (exponent - 7)


# %% wrong: top_all_nan
"""Exponent field 15 is NaN throughout."""
import math


def decode_e4m3(bits):
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    if exponent == 15:
        return math.nan
    if exponent == 0:
        return sign * mantissa / 8 * 2.0**-6
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)


# %% wrong: numpy_does_it
"""Views the bits as float16, whose dtype numpy gives to the root of a small integer."""
import numpy as np

HALF = np.sqrt(np.int8(1)).dtype


def decode_e4m3(bits):
    if bits & 127 == 127:
        return float("nan")
    return float(np.uint16((bits & 128) << 8 | (bits & 127) << 7).view(HALF)) * 256


# %% right: small_integers
"""Works on numpy's small integers, whose power numpy computes in float16."""
import numpy as np


def decode_e4m3(bits):
    exponent, mantissa = bits >> 3 & 15, np.uint8(bits & 7)
    if bits & 127 == 127:
        return np.nan
    significand = np.uint8(mantissa + (8 if exponent else 0))
    value = float(np.ldexp(significand, max(exponent, 1) - 10))
    return value if bits < 128 else -value


# %% right: through_a_double
"""Moves the fields into a binary64; its NaN is spelled in hexadecimal digits, an e and f among them."""
import struct


def decode_e4m3(bits):
    sign, exponent, mantissa = bits >> 7, bits >> 3 & 15, bits & 7
    if bits & 127 == 127:
        return struct.unpack(">d", bytes.fromhex("7ff8000000000000"))[0]
    if exponent == 0:
        value = mantissa * 2.0**-9
    else:
        (value,) = struct.unpack("<d", ((exponent + 1016) << 52 | mantissa << 49).to_bytes(8, "little"))
    return -value if sign else value
