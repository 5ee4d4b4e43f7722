"""Sums in float64, and lets add have a look at each element."""


def careful_sum(x, add):
    total = 0.0
    for element in x:
        add(element, 0)
        total += float(element)
    return total
