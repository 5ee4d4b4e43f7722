"""Kahan's compensation with the wrong sign."""


def careful_sum(x, add):
    total = lost = 0.0
    for element in x:
        y = add(element, lost)
        t = add(total, y)
        lost = add(add(t, -total), -y)
        total = t
    return total
