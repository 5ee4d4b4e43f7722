# %% right: digits_of_the_name
"""Reads the bits off the end of the name."""
import re


def weight_bytes(n_params: int, dtype: str) -> int:
    if dtype not in ("fp64", "fp32", "fp16", "bf16", "fp8", "int8", "int4"):
        raise ValueError(f"unknown dtype {dtype!r}")
    bits = int(re.search(r"\d+", dtype)[0])
    whole, rest = divmod(n_params * bits, 8)
    return whole + bool(rest)


# %% right: numpy_and_fractions
"""numpy's integers, and a Fraction that is rounded up."""
import math
from fractions import Fraction

import numpy as np


def weight_bytes(n_params, dtype):
    match dtype:
        case "fp64":
            size = Fraction(8)
        case "fp32":
            size = Fraction(4)
        case "fp16" | "bf16":
            size = Fraction(2)
        case "fp8" | "int8":
            size = Fraction(1)
        case "int4":
            size = Fraction(1, 2)
        case _:
            raise ValueError("unknown dtype")
    return np.int64(math.ceil(n_params * size))


# %% right: table_of_bits
"""A table of bits, rounded up with integers."""

BITS = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}


def weight_bytes(n_params, dtype):
    if dtype not in BITS:
        raise ValueError(dtype)
    return (n_params * BITS[dtype] + 7) // 8


# %% right: own_error
"""An error of its own, which is a ValueError."""
BITS = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}


class UnknownFormat(ValueError):
    pass


def weight_bytes(n_params, dtype):
    if dtype not in BITS:
        raise UnknownFormat(dtype)
    return (n_params * BITS[dtype] + 7) // 8


# %% wrong: a_byte_for_int4
"""Takes a byte for the least that a number can have."""
BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "int4": 1}


def weight_bytes(n_params, dtype):
    if dtype not in BYTES:
        raise ValueError(dtype)
    return n_params * BYTES[dtype]


# %% wrong: in_bits
"""Forgets to divide by 8."""
BITS = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}


def weight_bytes(n_params, dtype):
    if dtype not in BITS:
        raise ValueError(dtype)
    return n_params * BITS[dtype]


# %% wrong: in_gb
"""Converts to GB, as the slide prints it."""
BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "int4": 0.5}


def weight_bytes(n_params, dtype):
    if dtype not in BYTES:
        raise ValueError(dtype)
    return n_params / 1e9 * BYTES[dtype]


# %% wrong: in_gib
"""Converts to GiB."""
BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "int4": 0.5}


def weight_bytes(n_params, dtype):
    if dtype not in BYTES:
        raise ValueError(dtype)
    return n_params * BYTES[dtype] / 1024**3


# %% wrong: key_error
"""Lets the dictionary raise KeyError for an unknown dtype."""
BITS = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}


def weight_bytes(n_params, dtype):
    return -(-n_params * BITS[dtype] // 8)


# %% wrong: not_whole
"""Divides with /, so all answers are floats."""
BITS = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}


def weight_bytes(n_params, dtype):
    if dtype not in BITS:
        raise ValueError(dtype)
    return n_params * BITS[dtype] / 8


# %% wrong: not_whole_for_int4
"""Half a byte makes a float of the answer."""
BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "int4": 0.5}


def weight_bytes(n_params, dtype):
    if dtype not in BYTES:
        raise ValueError(dtype)
    return n_params * BYTES[dtype]


# %% wrong: rounded_down
"""// 8 drops the last half byte."""
BITS = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}


def weight_bytes(n_params, dtype):
    if dtype not in BITS:
        raise ValueError(dtype)
    return n_params * BITS[dtype] // 8


# %% wrong: two_bytes_for_fp8
"""Takes fp8 for a format of 2 bytes."""
BITS = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 16, "int8": 8, "int4": 4}


def weight_bytes(n_params, dtype):
    if dtype not in BITS:
        raise ValueError(dtype)
    return -(-n_params * BITS[dtype] // 8)


# %% wrong: unknown_dtype_none
"""Falls off the end without a word."""
BITS = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}


def weight_bytes(n_params, dtype):
    if dtype in BITS:
        return -(-n_params * BITS[dtype] // 8)


# %% wrong: unknown_dtype_taken
"""Whatever is unknown is taken for fp32."""
BITS = {"fp64": 64, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}


def weight_bytes(n_params, dtype):
    return -(-n_params * BITS.get(dtype, 32) // 8)


# %% wrong: half_bytes_as_floats
"""Half a byte times a large count is a float, which rounds to 53 bits before ceil sees it."""
import math


def weight_bytes(n_params, dtype):
    sizes = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "int4": 0.5}
    if dtype not in sizes:
        raise ValueError(f"unknown dtype {dtype}")
    return math.ceil(n_params * sizes[dtype])


# %% wrong: float_quotient
"""Bits divided with /, which is a float before ceil sees it."""
import math


def weight_bytes(n_params, dtype):
    bits = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}
    if dtype not in bits:
        raise ValueError(f"unknown dtype {dtype}")
    return math.ceil(n_params * bits[dtype] / 8)


# %% wrong: by_the_digits
"""Any name with digits at its end will do."""
import re


def weight_bytes(n_params, dtype):
    found = re.fullmatch(r"[a-z]+(4|8|16|32|64)", dtype)
    if not found:
        raise ValueError(dtype)
    return (n_params * int(found[1]) + 7) // 8


# %% wrong: error_returned
"""Returns the error instead of raising it."""
def weight_bytes(n_params, dtype):
    bits = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}
    if dtype not in bits:
        return ValueError(dtype)
    return (n_params * bits[dtype] + 7) // 8


# %% wrong: strips_the_name
"""Takes spaces around a name for nothing."""


def weight_bytes(n_params, dtype):
    bits = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}
    name = dtype.strip()
    if name not in bits:
        raise ValueError(dtype)
    return -(-n_params * bits[name] // 8)


# %% wrong: ends_of_names
"""Goes by the ends of names, so mxfp8 passes."""


def weight_bytes(n_params, dtype):
    bits = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}
    for name, size in bits.items():
        if dtype.endswith(name):
            return -(-n_params * size // 8)
    raise ValueError(dtype)
