"""A loop over the digits and what each is worth."""


def fixed_point_value(bits, width, fraction_bits):
    total = 0.0
    for place in range(width):
        if bits >> place & 1:
            worth = 2.0 ** (place - fraction_bits)
            total += -worth if place == width - 1 else worth
    return total
