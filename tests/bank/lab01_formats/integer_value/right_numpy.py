"""A dictionary of functions, and numpy's integers."""
import numpy as np

READ = {
    "unsigned": lambda bits, width: np.uint64(bits),
    "sign-magnitude": lambda bits, width: (
        np.int64(1 - 2 * (bits >> (width - 1))) * np.int64(bits & ((1 << (width - 1)) - 1))
    ),
    "twos-complement": lambda bits, width: np.int64(bits) - (np.int64(bits >> (width - 1)) << width),
}


def integer_value(bits, width, encoding):
    if encoding not in READ:
        raise ValueError("unknown encoding")
    return READ[encoding](bits, width)
