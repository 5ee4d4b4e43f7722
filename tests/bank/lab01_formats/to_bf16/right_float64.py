"""Rounds in float64, in units of the last place, and packs the fields."""
import numpy as np


def to_bf16(x):
    with np.errstate(invalid="ignore"):
        wide = np.abs(x.astype(np.float64))
    finite = np.where(np.isfinite(wide), wide, 0.0)
    exponent = np.where(finite < 2.0**-126, -126, np.frexp(finite)[1] - 1)
    magnitude = (exponent + 126 << 7) + np.rint(np.ldexp(finite, 7 - exponent)).astype(np.int64)
    magnitude = np.where(np.isinf(wide), 0x7F80, magnitude)
    magnitude = np.where(np.isnan(wide), 0x7FFF, magnitude)
    return (np.signbit(x).astype(np.int64) << 15 | magnitude).astype(np.uint16)
