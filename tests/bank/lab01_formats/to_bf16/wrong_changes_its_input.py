"""Adds into the view, and so into x itself."""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    nan = np.isnan(x)
    bits += 0x7FFF + (bits >> 16 & 1)
    return np.where(nan, 0x7FC0, bits >> 16).astype(np.uint16)
