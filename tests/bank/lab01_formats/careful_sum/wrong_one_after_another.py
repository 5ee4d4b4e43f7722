"""Plain addition from left to right."""


def careful_sum(x, add):
    total = 0.0
    for element in x:
        total = add(total, element)
    return total
