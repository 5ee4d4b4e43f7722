"""Schemes that store weights in few bits: their size, and their rounding of values.

A scheme cuts values into blocks. Each block has one scale, and each value a code. In "nf4_double",
the scales are codes too, with one scale for every 256 of them (QLoRA, Dettmers et al. 2023, section
3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from peakmem.core.errors import named, require_whole

__all__ = ["SCHEMES", "Blocks", "Scheme", "bits_a_weight", "round_trip", "scheme", "stored_bytes"]

Floats = npt.NDArray[np.float64]

_SCALES_OF_A_SCALE = 256  # QLoRA, section 3
_OFFSET = 0.9677083  # of the outermost quantile: QLoRA, appendix E


@dataclass(frozen=True)
class Scheme:
    """One way to store weights."""

    #: Such as "int8" or "nf4".
    name: str
    #: Bits of a value's code.
    code_bits: int
    #: Bits of a block's scale; 0 if values have no scale.
    scale_bits: int
    #: Whether scales are codes, with an fp32 scale for every 256 of them.
    scales_are_codes: bool = False
    #: Whether codes are quantiles of a normal distribution; if not, they are equal steps.
    normal_quantiles: bool = False


@dataclass(frozen=True)
class Blocks:
    """A scheme with the size of its blocks.

    >>> Blocks("nf4").stored_bytes(128)
    72
    """

    #: A key of SCHEMES.
    scheme: str
    #: Weights that share a scale.
    size: int = 64

    def stored_bytes(self, n: int) -> int:
        """Return the bytes of n weights; ValueError for an unknown scheme or a size below 1."""
        return stored_bytes(n, self.scheme, self.size)


SCHEMES: dict[str, Scheme] = {
    one.name: one
    for one in (
        Scheme("bf16", 16, 0),
        Scheme("int8", 8, 16),
        Scheme("int4", 4, 16),
        Scheme("nf4", 4, 32, normal_quantiles=True),
        Scheme("nf4_double", 4, 8, scales_are_codes=True, normal_quantiles=True),
    )
}


def scheme(name: str) -> Scheme:
    """Return the scheme of this name. Raises ValueError, listing all names, if it is unknown."""
    return named("scheme", name, SCHEMES)


def stored_bytes(n: int, name: str, block: int = 64) -> int:
    """Return the bytes of n weights: codes, scales and scales of scales, each rounded up.

    Raises ValueError if the scheme is unknown or the block is below 1.

    >>> stored_bytes(128, "bf16"), stored_bytes(128, "int4", 64), stored_bytes(128, "nf4", 64)
    (256, 68, 72)
    """
    one = scheme(name)
    require_whole("block", block)
    blocks = -(-n // block) if one.scale_bits else 0
    outer = -(-blocks // _SCALES_OF_A_SCALE) if one.scales_are_codes else 0
    return -(-n * one.code_bits // 8) + blocks * one.scale_bits // 8 + 4 * outer


def bits_a_weight(name: str, block: int = 64) -> float:
    """Return the bits that a weight of a large matrix takes, including scales.

    >>> round(bits_a_weight("nf4_double"), 3), bits_a_weight("nf4")
    (4.127, 4.5)
    """
    one = scheme(name)
    require_whole("block", block)
    outer = 32 / (block * _SCALES_OF_A_SCALE) if one.scales_are_codes else 0.0
    return one.code_bits + one.scale_bits / block + outer


def round_trip(x: npt.ArrayLike, name: str, block: int = 64) -> Floats:
    """Return values as they come back from storage in a scheme: float64, in the shape of x.

    A block's largest absolute value gets the largest code; a block of zeros stays zero. bf16 keeps
    8 bits of the significand. Scales are exact, except in "nf4_double": there, each scale's
    distance from the mean is rounded to an 8-bit code.

    Raises ValueError if the scheme is unknown or the block is below 1.

    >>> round_trip(np.array([1.0, -0.5, 0.3]), "int8").round(3).tolist()
    [1.0, -0.504, 0.299]
    """
    one = scheme(name)
    require_whole("block", block)
    flat = np.asarray(x, dtype=np.float64).ravel()
    if not one.scale_bits:
        mantissa, exponent = np.frexp(flat)
        shortened: Floats = np.ldexp(np.rint(mantissa * 256) / 256, exponent)
        return shortened.reshape(np.shape(x))
    padded = np.zeros(-(-flat.size // block) * block)
    padded[: flat.size] = flat
    blocks = padded.reshape(-1, block)
    scales = np.abs(blocks).max(axis=1, keepdims=True)
    share = blocks / np.where(scales == 0, 1.0, scales)
    if one.scales_are_codes:
        scales = _coded(scales)
    kept = _nearest_quantiles(share) if one.normal_quantiles else _nearest_steps(share, one)
    rounded: Floats = (kept * scales).ravel()[: flat.size].reshape(np.shape(x))
    return rounded


def _coded(scales: Floats) -> Floats:
    """Return the scales rounded to 8-bit codes of their distance from their mean."""
    flat = scales.ravel()
    mean = flat.mean() if flat.size else 0.0
    outer = np.zeros(-(-flat.size // _SCALES_OF_A_SCALE) * _SCALES_OF_A_SCALE)
    outer[: flat.size] = flat - mean
    groups = outer.reshape(-1, _SCALES_OF_A_SCALE)
    step = np.abs(groups).max(axis=1, keepdims=True) / 127
    codes = np.rint(groups / np.where(step == 0, 1.0, step))
    decoded: Floats = mean + (codes * step).ravel()[: flat.size]
    return decoded.reshape(scales.shape)


def _nearest_steps(share: Floats, one: Scheme) -> Floats:
    top = 2 ** (one.code_bits - 1) - 1
    rounded: Floats = np.rint(share * top) / top
    return rounded


def _nearest_quantiles(share: Floats) -> Floats:
    table = _normal_float()
    between = (table[1:] + table[:-1]) / 2
    nearest: Floats = table[np.searchsorted(between, share)]
    return nearest


@lru_cache(maxsize=1)
def _normal_float() -> Floats:
    """Return the 16 values of NF4: 7 quantiles below 0, 0, and 8 up to 1 (appendix E)."""
    inverse = NormalDist().inv_cdf
    above = [inverse(p) for p in np.linspace(_OFFSET, 0.5, 9)[:-1]]
    below = [-inverse(p) for p in np.linspace(_OFFSET, 0.5, 8)[:-1]]
    return np.sort([*below, 0.0, *above]) / max(above)
