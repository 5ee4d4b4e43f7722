"""A helper with numpy's float16 scalars, and what is owed as a pair of sums."""
import numpy as np


def one_more(state, value, add):
    total, owed = state
    y = np.float16(add(value, owed))
    new = np.float16(add(total, y))
    gained = np.float16(add(new, -total))
    return new, np.float16(add(y, -gained))


def careful_sum(x, add):
    state = (np.float16(0), np.float16(0))
    for i in range(x.size):
        state = one_more(state, x[i], add)
    return state[0]
