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
