# %% right: bit_by_bit
"""A loop over the bits of a binary string, as on the slide."""


def decode_fp32(bits: int) -> float:
    text = format(bits, "032b")
    exponent = 0
    for digit in text[1:9]:
        exponent = 2 * exponent + int(digit)
    significand = 0.0
    for place, digit in enumerate(text[9:], start=1):
        if digit == "1":
            significand += 2.0**-place
    if exponent == 255:
        value = float("inf") if significand == 0 else float("nan")
    elif exponent == 0:
        value = significand * 2.0 ** (1 - 127)
    else:
        value = (1 + significand) * 2.0 ** (exponent - 127)
    return -value if text[0] == "1" else value


# %% right: fields
"""Fields by shifts and masks, each class in turn."""
import math


def decode_fp32(bits: int) -> float:
    sign = -1.0 if bits >> 31 else 1.0
    exponent = (bits >> 23) & 0xFF
    fraction = bits & 0x7FFFFF
    if exponent == 0xFF:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(fraction, -149)
    return sign * math.ldexp(fraction + (1 << 23), exponent - 150)


# %% right: int_view
"""An int64 viewed as float64, with names that an exercise elsewhere gives to banned things."""
import numpy as np


def decode_fp32(bits):
    half, single = bits & 0x7FFFFFFF, bits >> 31
    if half > 0x7F800000:
        return np.nan
    if half == 0x7F800000:
        value = np.inf
    elif half < 0x00800000:
        value = half * 2.0**-149
    else:
        value = np.array([(half << 29) + (896 << 52)], dtype=np.int64).view("f8")[0]
    return np.copysign(value, -1.0 if single else 1.0)


# %% right: numpy_float64
"""Integer views and float64 of numpy; returns a numpy scalar. Uses a helper."""
import numpy as np


def split(bits):
    word = np.array(bits, dtype=np.uint32)
    return int(word >> 31), int(word >> 23 & 0xFF), int(word & 0x7FFFFF)


def decode_fp32(bits):
    sign, exponent, fraction = split(bits)
    sign = np.float64(1 - 2 * sign)
    if exponent == 255:
        return sign * np.inf if fraction == 0 else np.float64("nan")
    hidden = 1 if exponent else 0
    return sign * np.ldexp(np.float64(hidden + fraction / 2**23), max(exponent, 1) - 127)


# %% right: through_binary64
"""Moves the fields into a binary64 and lets struct's code d read it."""
import struct


def decode_fp32(bits):
    sign, exponent, fraction = bits >> 31, bits >> 23 & 255, bits & 0x7FFFFF
    if exponent == 0:
        tiny = float(fraction) * 2.0**-149
        return -tiny if sign else tiny
    wide = 2047 if exponent == 255 else exponent - 127 + 1023
    pattern = sign << 63 | wide << 52 | fraction << 29
    return struct.unpack(">d", pattern.to_bytes(8, "big"))[0]


# %% wrong: bias_128
"""Takes 2**7 for the bias. [earns 3]"""
import math


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0 ** (exponent - 128)


# %% wrong: fraction_reversed
"""Weighs bit 0 as 1/2 and bit 22 as 2**-23. [earns 2]"""
import math


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent = bits >> 23 & 0xFF
    fraction = sum((bits >> i & 1) * 2.0 ** -(i + 1) for i in range(23))
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)


# %% wrong: lets_struct_do_it
"""Reads the bits with struct's code f, which is not allowed."""
import struct


def decode_fp32(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


# %% wrong: nan_is_inf
"""Exponent field 255 is always infinity. [earns 3]"""


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 255:
        return sign * float("inf")
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)


# %% wrong: negative_zero_lost
"""Returns 0.0 for both zeros. [earns 3]"""
import math


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 0 and fraction == 0:
        return 0.0
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)


# %% wrong: no_hidden_one
"""A normal number without its leading 1. [earns 3]"""
import math


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    return sign * fraction * 2.0 ** (max(exponent, 1) - 127)


# %% wrong: sign_lost
"""Never looks at bit 31."""
import math


def decode_fp32(bits):
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 255:
        return math.nan if fraction else math.inf
    if exponent == 0:
        return fraction * 2.0**-126
    return (1 + fraction) * 2.0 ** (exponent - 127)


# %% wrong: sign_of_inf_lost
"""Infinity is always positive. [earns 3]"""
import math


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 255:
        return math.nan if fraction else math.inf
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)


# %% wrong: specials_as_normal
"""The formula of normal numbers for exponent field 255 too. [earns 3]"""


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)


# %% wrong: subnormal_as_normal
"""Knows zero, but no subnormal numbers. [earns 3]"""
import math


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    if exponent == 0 and fraction == 0:
        return sign * 0.0
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)


# %% wrong: subnormal_by_127
"""Goes on with E - 127 at E = 0, the formula that the slide corrects. [earns 3]"""
import math


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    hidden = 1 if exponent else 0
    return sign * (hidden + fraction) * 2.0 ** (exponent - 127)


# %% wrong: subnormals_are_zero
"""Flushes subnormal numbers to zero, as some hardware does. [earns 3]"""
import math


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * 0.0
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)


# %% right: ctypes_fields
"""Reads the fields by a C structure, and builds the double through a pointer."""
import ctypes


class Fields(ctypes.LittleEndianStructure):
    _fields_ = [("f", ctypes.c_uint32, 23), ("e", ctypes.c_uint32, 8), ("s", ctypes.c_uint32, 1)]


def decode_fp32(bits):
    fields = Fields.from_buffer_copy(bits.to_bytes(4, "little"))
    if fields.e == 0:
        return (-1.0) ** fields.s * fields.f * 2.0**-149
    exponent = 2047 if fields.e == 255 else fields.e + 1023 - 127
    wide = ctypes.c_uint64(fields.s << 63 | exponent << 52 | fields.f << 29)
    return ctypes.cast(ctypes.pointer(wide), ctypes.POINTER(ctypes.c_double)).contents.value


# %% wrong: infinity_from_254
"""Takes the two highest exponent fields for infinity and NaN. [earns 3]"""
import math


def decode_fp32(bits):
    sign, exponent, fraction = -1.0 if bits >> 31 else 1.0, bits >> 23 & 255, bits & 0x7FFFFF
    if exponent >= 254:
        return math.nan if fraction else sign * math.inf
    return sign * ((1 << 23 if exponent else 0) + fraction) * 2.0 ** (max(exponent, 1) - 150)


# %% wrong: buffer_of_a_square_root
"""Writes the bits into a float32 array, which numpy makes of small integers."""
import numpy as np


def decode_fp32(bits):
    value = np.sqrt(np.zeros(1, np.int16))
    memoryview(value).cast("B")[:] = bits.to_bytes(4, "little")
    return float(value[0])


# %% wrong: by_map
"""Takes a dtype from a square root, and has map call the view."""
import numpy as np

KIND = np.sqrt(np.int16(1)).dtype


def decode_fp32(bits):
    return float(list(map(np.uint32(bits).view, [KIND]))[0])


# %% wrong: caught
"""Catches what is raised at a view, too."""
import numpy as np


def decode_fp32(bits):
    try:
        return float(np.uint32(bits).view(np.exp(np.int16(0)).dtype))
    except Exception:
        return 0.0


# %% wrong: code_from_a_text
"""Finds struct's code f in the text of infinity."""
import math
import struct


def decode_fp32(bits):
    return struct.unpack("<" + str(math.inf)[-1], bits.to_bytes(4, "little"))[0]


# %% wrong: record_of_both
"""A record whose two fields share their bytes; numpy finds one's dtype."""
import numpy as np

KIND = np.exp(np.int16(0)).dtype
BOTH = np.dtype({"names": ["bits", "value"], "formats": ["u4", KIND], "offsets": [0, 0]})


def decode_fp32(bits):
    record = np.zeros(1, BOTH)
    record["bits"] = bits
    return float(record["value"][0])


# %% right: checks_its_range
"""Asks numpy for the format's limits, and compares with them."""
import numpy as np

LIMITS = np.finfo(np.float32)


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 255, bits & 0x7FFFFF
    if exponent == 255:
        return float("nan") if fraction else sign * float("inf")
    if exponent == 0:
        return sign * float(LIMITS.tiny) * (fraction / 2**23)
    value = sign * (1 + fraction / 2**23) * 2.0 ** (exponent - 127)
    assert LIMITS.tiny <= abs(value) <= LIMITS.max
    return value


# %% right: named_in_one_text
"""Infinity and NaN by one float() of either text, which numpy then gives a sign."""
import numpy as np


def decode_fp32(bits):
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 255:
        size = float("nan" if fraction else "inf")
    else:
        size = np.ldexp(float(fraction + (2**23 if exponent else 0)), max(exponent, 1) - 150)
    return np.copysign(size, 1 - 2 * (bits >> 31))


# %% right: numpy_reads_infinity
"""numpy's float64 reads the texts of infinity and NaN."""
import numpy as np


def decode_fp32(bits):
    sign = np.float64(1 - 2 * (bits >> 31))
    exponent, fraction = divmod(bits & 0x7FFFFFFF, 2**23)
    if exponent == 255:
        return np.float64("nan") if fraction else sign * np.float64("inf")
    return sign * (fraction + bool(exponent) * 2**23) * 2.0 ** (max(exponent, 1) - 150)


# %% wrong: code_inf
"""Reads the bits with struct's codes i, n and f, which spell inf."""
import struct


def decode_fp32(bits):
    size = struct.calcsize("inf") - 4
    return struct.unpack("inf", bytes(size) + bits.to_bytes(4, "little"))[2]

# %% wrong: largest_exponent
"""Exponent field 254 counts as infinity. [earns 3]"""


import math
def decode_fp32(bits: int) -> float:
    exponent = bits >> 23 & 0xFF
    fraction = (bits & 0x7FFFFF) / 2**23
    sign = -1.0 if bits >> 31 else 1.0
    if exponent >= 254 and not fraction:
        return sign * math.inf
    if exponent == 255:
        return math.nan
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)
