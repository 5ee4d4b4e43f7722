"""numpy's frexp and rint on all three at once; returns a numpy bool."""
import numpy as np


def to_format(x, e, m):
    x = np.asarray(x, dtype=float)
    bias = 2 ** (e - 1) - 1
    exponent = np.where(x == 0, 1 - bias, np.maximum(np.frexp(x)[1] - 1, 1 - bias))
    with np.errstate(invalid="ignore"):
        y = np.ldexp(np.rint(np.ldexp(x, m - exponent)), exponent - m)
    y = np.where(np.isinf(x), x, y)
    return np.where(np.abs(y) > (2 - 2.0**-m) * 2.0**bias, np.copysign(np.inf, x), y)


def update_lost(param, update, e, m):
    p, u = to_format([param, update], e, m)
    return np.equal(to_format(p + u, e, m), p)
