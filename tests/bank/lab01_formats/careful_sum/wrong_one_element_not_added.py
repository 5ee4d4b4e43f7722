"""Starts with the first element itself, and so returns it unadded where it is alone."""


def careful_sum(x, add):
    if len(x) == 0:
        return 0.0
    s, owed = float(x[0]), 0.0
    for v in x[1:]:
        y = add(v, owed)
        t = add(s, y)
        owed = add(y, -add(t, -s))
        s = t
    return s
