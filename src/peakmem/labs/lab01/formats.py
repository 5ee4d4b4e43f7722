"""What floating-point formats hold, and how a number is rounded to one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["fields", "float16_sums", "limits_by_torch", "rounded"]


def rounded(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    """Return the number nearest to `x` in an IEEE-like format; ties go to even, overflow to inf.

    >>> rounded(0.1, 5, 10), rounded(1 + 2**-11, 5, 10), rounded(1e6, 5, 10)
    (0.0999755859375, 1.0, inf)
    """
    if x == 0 or not math.isfinite(x):
        return x
    bias = 2 ** (exponent_bits - 1) - 1
    exponent = max(math.frexp(x)[1] - 1, 1 - bias) - mantissa_bits  # of the gap around x
    gaps = round(math.ldexp(x, -exponent))
    if gaps.bit_length() + exponent > bias + 1:  # 2**1024, which ldexp refuses, among others
        return math.copysign(math.inf, x)
    return math.ldexp(gaps, exponent)


def fields(bits: int) -> str:
    """Return the three fields of an fp32 pattern, written in binary.

    >>> fields(0x3E200000)
    '0 01111100 01000000000000000000000'
    """
    text = f"{bits:032b}"
    return f"{text[0]} {text[1:9]} {text[9:]}"


def limits_by_torch(name: str) -> dict[str, float]:
    """Return what torch says a format can hold, under the keys of exercise 1.4.

    >>> limits_by_torch("float16")["max"]
    65504.0
    """
    import torch

    info = torch.finfo(getattr(torch, name))
    return {
        "max": info.max,
        "min_normal": info.smallest_normal,
        "min_subnormal": info.smallest_normal * info.eps,
        "epsilon": info.eps,
    }


def float16_sums(step: float, count: int) -> NDArray[np.float16]:
    """Return the sums 0, step, 2 * step, ... in float16: each one is rounded.

    >>> float(float16_sums(0.01, 1000)[-1])
    9.953125
    """
    sums = np.zeros(count + 1, np.float16)
    for i in range(count):
        sums[i + 1] = float(sums[i]) + step
    return sums
