"""Compares with half the range."""


def integer_value(bits: int, width: int, encoding: str) -> int:
    half = 2 ** (width - 1)
    if encoding == "unsigned":
        return bits
    if encoding == "sign-magnitude":
        return bits if bits < half else half - bits
    if encoding == "twos-complement":
        return bits if bits < half else bits - 2 * half
    raise ValueError(encoding)
