"""Adds 0x8000, so every tie goes up. [earns 2]"""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    return np.where(np.isnan(x), 0x7FC0, (bits + 0x8000) >> 16).astype(np.uint16)
