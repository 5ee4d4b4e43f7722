"""The trick of adding 0x7FFF, with no thought of NaN. [earns 2]"""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
