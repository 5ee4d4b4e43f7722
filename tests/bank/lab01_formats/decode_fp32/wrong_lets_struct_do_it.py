"""Reads the bits with struct's code f, which is not allowed."""
import struct


def decode_fp32(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]
