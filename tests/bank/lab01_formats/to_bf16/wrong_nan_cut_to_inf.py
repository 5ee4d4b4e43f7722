"""Cuts NaN and infinity off without rounding: a low payload is lost. [earns 2]"""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    rounded = bits + 0x7FFF + (bits >> 16 & 1)
    special = bits & 0x7F800000 == 0x7F800000
    return (np.where(special, bits, rounded) >> 16).astype(np.uint16)
