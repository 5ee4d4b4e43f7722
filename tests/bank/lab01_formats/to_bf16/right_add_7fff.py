"""The trick of adding 0x7FFF and the last bit, NaN apart."""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16)
