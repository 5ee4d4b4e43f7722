"""Halves the elements first, which add does not take."""


def careful_sum(x, add):
    total = 0.0
    for element in x:
        total = add(total, float(element) / 3)
    return add(add(total, total), total)
