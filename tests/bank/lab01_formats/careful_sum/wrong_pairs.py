"""A tree of additions, good on average."""


def careful_sum(x, add):
    x = [float(v) for v in x]
    if not x:
        return 0.0
    if len(x) == 1:
        return add(x[0], 0)
    while len(x) > 1:
        odd = x[-1:] if len(x) % 2 else []
        x = [add(a, b) for a, b in zip(x[::2], x[1::2])] + odd
    return x[0]
