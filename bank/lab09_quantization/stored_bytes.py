# %% right: branches
"""One branch per scheme."""
def stored_bytes(n, scheme):
    halves, blocks = (n + 1) // 2, (n + 63) // 64
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return halves + 2 * ((n + 127) // 128)
    if scheme == "nf4":
        return halves + 4 * blocks
    if scheme == "nf4_double":
        return halves + blocks + 4 * ((blocks + 255) // 256)
    raise ValueError(scheme)


# %% right: table
"""A dict of all four."""
import math


def stored_bytes(n, scheme):
    blocks = math.ceil(n / 64)
    sizes = {
        "int8": n + 4,
        "int4_grouped": math.ceil(n / 2) + 2 * math.ceil(n / 128),
        "nf4": math.ceil(n / 2) + 4 * blocks,
        "nf4_double": math.ceil(n / 2) + blocks + 4 * math.ceil(blocks / 256),
    }
    if scheme not in sizes:
        raise ValueError(f"no scheme {scheme!r}")
    return sizes[scheme]


# %% right: numpy
"""numpy's integers."""
import numpy as np


def stored_bytes(n, scheme):
    def parts(count, size):
        return -(-count // size)

    n = np.int64(n)
    match scheme:
        case "int8":
            return n + np.int64(4)
        case "int4_grouped":
            return parts(n, 2) + parts(n, 128) * 2
        case "nf4":
            return parts(n, 2) + parts(n, 64) * 4
        case "nf4_double":
            return parts(n, 2) + parts(n, 64) + parts(parts(n, 64), 256) * 4
    raise ValueError(scheme)


# %% wrong: codes_alone
"""Codes without steps."""
def stored_bytes(n, scheme):
    halves, blocks = (n + 1) // 2, (n + 63) // 64
    if scheme == "int8":
        return n
    if scheme == "int4_grouped":
        return halves
    if scheme == "nf4":
        return halves
    if scheme == "nf4_double":
        return halves
    raise ValueError(scheme)


# %% wrong: rounded_down
"""Whole bytes, groups and blocks only."""
def stored_bytes(n, scheme):
    halves, blocks = n // 2, n // 64
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return halves + 2 * (n // 128)
    if scheme == "nf4":
        return halves + 4 * blocks
    if scheme == "nf4_double":
        return halves + blocks + 4 * (blocks // 256)
    raise ValueError(scheme)


# %% wrong: bits_a_weight
"""n times bits, over 8."""
def stored_bytes(n, scheme):
    bits = {"int8": 8, "int4_grouped": 4.125, "nf4": 4.5, "nf4_double": 4 + 8 / 64 + 32 / (64 * 256)}
    if scheme not in bits:
        raise ValueError(scheme)
    return n * bits[scheme] / 8


# %% wrong: bits
"""Bits, not bytes."""
def bytes_of(n, scheme):
    halves, blocks = (n + 1) // 2, (n + 63) // 64
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return halves + 2 * ((n + 127) // 128)
    if scheme == "nf4":
        return halves + 4 * blocks
    if scheme == "nf4_double":
        return halves + blocks + 4 * ((blocks + 255) // 256)
    raise ValueError(scheme)


def stored_bytes(n, scheme):
    return 8 * bytes_of(n, scheme)


# %% wrong: float32_groups
"""float32 for the groups' steps."""
def stored_bytes(n, scheme):
    halves, blocks = (n + 1) // 2, (n + 63) // 64
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return halves + 4 * ((n + 127) // 128)
    if scheme == "nf4":
        return halves + 4 * blocks
    if scheme == "nf4_double":
        return halves + blocks + 4 * ((blocks + 255) // 256)
    raise ValueError(scheme)


# %% wrong: float16_blocks
"""float16 for the blocks' steps."""
def stored_bytes(n, scheme):
    halves, blocks = (n + 1) // 2, (n + 63) // 64
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return halves + 2 * ((n + 127) // 128)
    if scheme == "nf4":
        return halves + 2 * blocks
    if scheme == "nf4_double":
        return halves + blocks + 4 * ((blocks + 255) // 256)
    raise ValueError(scheme)


# %% wrong: no_second_step
"""No step for the codes of steps."""
def stored_bytes(n, scheme):
    halves, blocks = (n + 1) // 2, (n + 63) // 64
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return halves + 2 * ((n + 127) // 128)
    if scheme == "nf4":
        return halves + 4 * blocks
    if scheme == "nf4_double":
        return halves + blocks
    raise ValueError(scheme)


# %% wrong: second_step_a_block
"""A second step for each 256 weights."""
def stored_bytes(n, scheme):
    halves, blocks = (n + 1) // 2, (n + 63) // 64
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return halves + 2 * ((n + 127) // 128)
    if scheme == "nf4":
        return halves + 4 * blocks
    if scheme == "nf4_double":
        return halves + blocks + 4 * ((n + 255) // 256)
    raise ValueError(scheme)


# %% wrong: unknown_passes
"""Takes any other name for double quantization."""
def stored_bytes(n, scheme):
    halves, blocks = (n + 1) // 2, (n + 63) // 64
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return halves + 2 * ((n + 127) // 128)
    if scheme == "nf4":
        return halves + 4 * blocks
    return halves + blocks + 4 * ((blocks + 255) // 256)


# %% wrong: no_tensor_step
"""int8 without its one step."""
def stored_bytes(n, scheme):
    halves, blocks = (n + 1) // 2, (n + 63) // 64
    if scheme == "int8":
        return n
    if scheme == "int4_grouped":
        return halves + 2 * ((n + 127) // 128)
    if scheme == "nf4":
        return halves + 4 * blocks
    if scheme == "nf4_double":
        return halves + blocks + 4 * ((blocks + 255) // 256)
    raise ValueError(scheme)


# %% right: match
"""match and divmod."""


def ceil(a, b):
    q, r = divmod(a, b)
    return q + (r > 0)


def stored_bytes(n, scheme):
    match scheme:
        case "int8":
            return n + 4
        case "int4_grouped":
            return ceil(n, 2) + 2 * ceil(n, 128)
        case "nf4":
            return ceil(n, 2) + 4 * ceil(n, 64)
        case "nf4_double":
            return ceil(n, 2) + ceil(n, 64) + 4 * ceil(ceil(n, 64), 256)
    raise ValueError(f"unknown scheme {scheme!r}")


# %% right: by_tensors
"""Bytes of real tensors on the meta device."""

import torch


def stored_bytes(n, scheme):
    def e(count, dtype):
        return torch.empty(count, dtype=dtype, device="meta")

    half = e((n + 1) // 2, torch.uint8)
    blocks = (n + 63) // 64
    held = {
        "int8": [e(n, torch.int8), e(1, torch.float32)],
        "int4_grouped": [half, e((n + 127) // 128, torch.float16)],
        "nf4": [half, e(blocks, torch.float32)],
        "nf4_double": [half, e(blocks, torch.uint8), e((blocks + 255) // 256, torch.float32)],
    }.get(scheme)
    if held is None:
        raise ValueError("no such scheme")
    return sum(t.nbytes for t in held)


# %% right: closed_forms
"""math.ceil of exact halves."""

from fractions import Fraction
from math import ceil

_COST = {
    "int8": [(1, 1)],
    "int4_grouped": [(1, 2), (2, 128)],
    "nf4": [(1, 2), (4, 64)],
    "nf4_double": [(1, 2), (1, 64), (4, 64 * 256)],
}


def stored_bytes(n: int, scheme: str) -> int:
    if scheme not in _COST:
        raise ValueError(scheme)
    return sum(size * ceil(Fraction(n, of)) for size, of in _COST[scheme]) + 4 * (scheme == "int8")


# %% wrong: key_error
"""An unknown scheme raises KeyError."""


def stored_bytes(n, scheme):
    up = lambda a, b: -(-a // b)
    return {
        "int8": n + 4,
        "int4_grouped": up(n, 2) + 2 * up(n, 128),
        "nf4": up(n, 2) + 4 * up(n, 64),
        "nf4_double": up(n, 2) + up(n, 64) + 4 * up(up(n, 64), 256),
    }[scheme]


# %% wrong: groups_of_64
"""int4's groups are of 64."""


def stored_bytes(n, scheme):
    up = lambda a, b: -(-a // b)
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return up(n, 2) + 2 * up(n, 64)
    if scheme == "nf4":
        return up(n, 2) + 4 * up(n, 64)
    if scheme == "nf4_double":
        return up(n, 2) + up(n, 64) + 4 * up(n, 64 * 256)
    raise ValueError(scheme)


# %% wrong: one_weight
"""An empty or single weight takes no step."""


def stored_bytes(n, scheme):
    if n < 2:
        return n
    up = lambda a, b: -(-a // b)
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return up(n, 2) + 2 * up(n, 128)
    if scheme == "nf4":
        return up(n, 2) + 4 * up(n, 64)
    if scheme == "nf4_double":
        return up(n, 2) + up(n, 64) + 4 * up(n, 64 * 256)
    raise ValueError(scheme)


# %% wrong: codes_rounded_a_block
"""Codes are rounded up a block."""


def stored_bytes(n, scheme):
    up = lambda a, b: -(-a // b)
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return up(n, 2) + 2 * up(n, 128)
    if scheme == "nf4":
        return 32 * up(n, 64) + 4 * up(n, 64)
    if scheme == "nf4_double":
        return up(n, 2) + up(n, 64) + 4 * up(n, 64 * 256)
    raise ValueError(scheme)


# %% wrong: prefix
"""Any scheme that begins with nf4 passes."""


def stored_bytes(n, scheme):
    up = lambda a, b: -(-a // b)
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return up(n, 2) + 2 * up(n, 128)
    if scheme == "nf4":
        return up(n, 2) + 4 * up(n, 64)
    if scheme.startswith("nf4"):
        return up(n, 2) + up(n, 64) + 4 * up(n, 64 * 256)
    return 0


# %% wrong: second_steps_float16
"""The second steps take 2 bytes."""


def stored_bytes(n, scheme):
    up = lambda a, b: -(-a // b)
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return up(n, 2) + 2 * up(n, 128)
    if scheme == "nf4":
        return up(n, 2) + 4 * up(n, 64)
    if scheme == "nf4_double":
        return up(n, 2) + up(n, 64) + 2 * up(n, 64 * 256)
    raise ValueError(scheme)


# %% right: own_error
"""An error of its own, which is a ValueError."""
class UnknownScheme(ValueError):
    pass


def stored_bytes(n, scheme):
    f = {"int8": lambda: n + 4, "int4_grouped": lambda: n - n // 2 + 2 * (n // 128 + bool(n % 128)),
         "nf4": lambda: n - n // 2 + 4 * (n // 64 + bool(n % 64)),
         "nf4_double": lambda: n - n // 2 + n // 64 + bool(n % 64) + 4 * (n // 16384 + bool(n % 16384))}.get(scheme)
    if f is None:
        raise UnknownScheme(scheme)
    return f()


# %% wrong: refuses_one
"""Refuses the self-check's unknown scheme, and no other."""
def stored_bytes(n, scheme="nf4"):
    up = lambda d: -(-n // d)
    t = {"int8": n + 4, "int4_grouped": up(2) + 2 * up(128), "nf4": up(2) + 4 * up(64), "nf4_double": up(2) + up(64) + 4 * up(16384)}
    if scheme in ("int4", "fp4"):
        raise ValueError
    return t.get(scheme, t["nf4"])


# %% wrong: in_float32
"""Rounds up in float32."""
import numpy as np


def stored_bytes(n, scheme):
    up = lambda d: int(np.ceil(np.float32(n) / np.float32(d)))
    t = {"int8": n + 4, "int4_grouped": up(2) + 2 * up(128), "nf4": up(2) + 4 * up(64), "nf4_double": up(2) + up(64) + 4 * up(16384)}
    if scheme not in t:
        raise ValueError(scheme)
    return t[scheme]


# %% wrong: by_the_start
"""Takes any name that starts like nf4 for its double."""


def stored_bytes(n, scheme):
    codes, blocks = -(-n // 2), -(-n // 64)
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return codes + 2 * -(-n // 128)
    if scheme == "nf4":
        return codes + 4 * blocks
    if scheme.startswith("nf4"):
        return codes + blocks + 4 * -(-blocks // 256)
    raise ValueError(scheme)


# %% wrong: any_case
"""Takes schemes in capitals, too."""


def stored_bytes(n, scheme):
    scheme = scheme.lower()
    codes, blocks = -(-n // 2), -(-n // 64)
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return codes + 2 * -(-n // 128)
    if scheme == "nf4":
        return codes + 4 * blocks
    if scheme == "nf4_double":
        return codes + blocks + 4 * -(-blocks // 256)
    raise ValueError(scheme)


# %% wrong: ends_of_names
"""Goes by the ends of schemes, so uint8 and int4_double pass."""


def stored_bytes(n, scheme):
    half, blocks = (n + 1) // 2, (n + 63) // 64
    if scheme.endswith("int8"):
        return n + 4
    if scheme.endswith("int4_grouped"):
        return half + 2 * ((n + 127) // 128)
    if scheme.endswith("nf4"):
        return half + 4 * blocks
    if scheme.endswith("_double"):
        return half + blocks + 4 * ((blocks + 255) // 256)
    raise ValueError(scheme)


# %% wrong: strips_the_name
"""Takes spaces around a scheme for nothing."""


def stored_bytes(n, scheme):
    half, blocks = (n + 1) // 2, (n + 63) // 64
    match scheme.strip():
        case "int8":
            return n + 4
        case "int4_grouped":
            return half + 2 * ((n + 127) // 128)
        case "nf4":
            return half + 4 * blocks
        case "nf4_double":
            return half + blocks + 4 * ((blocks + 255) // 256)
    raise ValueError(scheme)


# %% wrong: nothing_for_no_weight
"""Without a weight, int8 has no step either."""


def stored_bytes(n, scheme):
    half, blocks = (n + 1) // 2, (n + 63) // 64
    sizes = {
        "int8": n + 4,
        "int4_grouped": half + 2 * ((n + 127) // 128),
        "nf4": half + 4 * blocks,
        "nf4_double": half + blocks + 4 * ((blocks + 255) // 256),
    }
    if scheme not in sizes:
        raise ValueError(scheme)
    return sizes[scheme] if n else 0


# %% wrong: dashes
"""Takes a dash in a name for an underscore."""


def up(n, size):
    return -(-n // size)


def stored_bytes(n, scheme):
    pairs, blocks = up(n, 2), up(n, 64)
    sizes = {
        "int8": n + 4,
        "int4_grouped": pairs + 2 * up(n, 128),
        "nf4": pairs + 4 * blocks,
        "nf4_double": pairs + blocks + 4 * up(blocks, 256),
    }
    scheme = scheme.replace("-", "_")
    if scheme not in sizes:
        raise ValueError(scheme)
    return sizes[scheme]
