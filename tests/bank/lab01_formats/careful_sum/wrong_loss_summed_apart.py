"""Neumaier's way: sums up what is lost, and adds it at the end."""


def careful_sum(x, add):
    if len(x) == 0:
        return 0.0
    s, c = float(x[0]), 0.0
    for v in map(float, x[1:]):
        t = add(s, v)
        if abs(s) >= abs(v):
            c = add(c, add(add(s, -t), v))
        else:
            c = add(c, add(add(v, -t), s))
        s = t
    return add(s, c)
