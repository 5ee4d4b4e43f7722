"""A loop over the bits of a binary string, as on the slide."""


def decode_fp32(bits: int) -> float:
    text = format(bits, "032b")
    exponent = 0
    for digit in text[1:9]:
        exponent = 2 * exponent + int(digit)
    significand = 0.0
    for place, digit in enumerate(text[9:], start=1):
        if digit == "1":
            significand += 2.0 ** -place
    if exponent == 255:
        value = float("inf") if significand == 0 else float("nan")
    elif exponent == 0:
        value = significand * 2.0 ** (1 - 127)
    else:
        value = (1 + significand) * 2.0 ** (exponent - 127)
    return -value if text[0] == "1" else value
