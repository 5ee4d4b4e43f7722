"""Forgets the empty array."""


def careful_sum(x, add):
    s, owed = add(x[0], 0), 0.0
    for v in x[1:]:
        y = add(v, owed)
        t = add(s, y)
        owed = add(y, -add(t, -s))
        s = t
    return s
