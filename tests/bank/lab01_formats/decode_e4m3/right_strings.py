"""Cuts the pattern as text."""


def decode_e4m3(bits):
    text = f"{bits:08b}"
    if text[1:] == "1111111":
        return float("nan")
    exponent = int(text[1:5], 2)
    hidden = 1 if exponent > 0 else 0
    significand = hidden + sum(2.0**-i for i in (1, 2, 3) if text[4 + i] == "1")
    return (-1.0) ** int(text[0]) * significand * 2.0 ** (max(exponent, 1) - 7)
