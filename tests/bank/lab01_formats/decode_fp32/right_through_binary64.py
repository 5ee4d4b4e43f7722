"""Moves the fields into a binary64 and lets struct's code d read it."""
import struct


def decode_fp32(bits):
    sign, exponent, fraction = bits >> 31, bits >> 23 & 255, bits & 0x7FFFFF
    if exponent == 0:
        tiny = float(fraction) * 2.0**-149
        return -tiny if sign else tiny
    wide = 2047 if exponent == 255 else exponent - 127 + 1023
    pattern = sign << 63 | wide << 52 | fraction << 29
    return struct.unpack(">d", pattern.to_bytes(8, "big"))[0]
