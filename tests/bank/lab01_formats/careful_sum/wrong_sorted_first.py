"""Adds the small ones first."""


def careful_sum(x, add):
    total = 0.0
    for element in sorted(x, key=abs):
        total = add(total, element)
    return total
