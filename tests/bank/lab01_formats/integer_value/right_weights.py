"""A loop over the digits, each with its worth."""


def integer_value(bits, width, encoding):
    digits = [int(digit) for digit in format(bits, f"0{width}b")]
    worth = [2**i for i in reversed(range(width))]
    if encoding == "twos-complement":
        worth[0] = -worth[0]
    elif encoding == "sign-magnitude":
        worth[0] = 0
    elif encoding != "unsigned":
        raise ValueError(f"unknown encoding {encoding}")
    total = sum(w * d for w, d in zip(worth, digits))
    return -total if encoding == "sign-magnitude" and digits[0] else total
