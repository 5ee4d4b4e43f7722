"""Kahan's compensation, 4 additions an element."""


def careful_sum(x, add):
    total = too_much = 0.0
    for element in x:
        y = add(element, -too_much)
        t = add(total, y)
        too_much = add(add(t, -total), -y)
        total = t
    return total
