"""Returns one long row whatever the shape. [earns 2]"""
import numpy as np


def to_bf16(x):
    bits = x.ravel().view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x.ravel()), 0x7FC0, rounded).astype(np.uint16)
