"""Integers only: takes the binary64 pattern from struct's code d and shifts it down."""
import struct


def encode_fp32(x):
    (wide,) = struct.unpack("<Q", struct.pack("<d", x))
    sign = (wide >> 63) << 31
    exponent = (wide >> 52) & 0x7FF
    fraction = wide & ((1 << 52) - 1)
    if exponent == 0x7FF:
        return sign | 0x7F800000 | (0x400000 if fraction else 0)
    exponent -= 1023 - 127
    shift = 29
    significand = fraction | 1 << 52
    if exponent <= 0:
        shift += 1 - exponent
        exponent = 1
        if shift > 60:
            return sign
    kept, rest = significand >> shift, significand & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    if rest > half or (rest == half and kept & 1):
        kept += 1
    bits = ((exponent - 1) << 23) + kept
    return sign | min(bits, 0x7F800000)
