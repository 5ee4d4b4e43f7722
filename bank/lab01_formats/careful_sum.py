# %% right: float16_scalars
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


# %% right: kahan
"""Kahan's compensation, 4 additions per element."""


def careful_sum(x, add):
    total = too_much = 0.0
    for element in x:
        y = add(element, -too_much)
        t = add(total, y)
        too_much = add(add(t, -total), -y)
        total = t
    return total


# %% right: knuth_start
"""What is owed is kept positive, in Python floats; starts with the first element, added to 0."""


def careful_sum(x, add):
    values = [float(v) for v in x]
    if not values:
        return 0.0
    s, owed = add(values[0], 0), 0.0
    for v in values[1:]:
        y = add(v, owed)
        previous, s = s, add(s, y)
        gained = add(s, -previous)
        owed = add(y, -gained)
    return s


# %% wrong: compensation_added
"""Kahan's compensation with the wrong sign."""


def careful_sum(x, add):
    total = lost = 0.0
    for element in x:
        y = add(element, lost)
        t = add(total, y)
        lost = add(add(t, -total), -y)
        total = t
    return total


# %% wrong: empty_array
"""Forgets the empty array."""


def careful_sum(x, add):
    s, owed = add(x[0], 0), 0.0
    for v in x[1:]:
        y = add(v, owed)
        t = add(s, y)
        owed = add(y, -add(t, -s))
        s = t
    return s


# %% wrong: forges_the_log
"""Tries to write an addition into the log that never was allowed."""
import numpy as np


def careful_sum(x, add):
    total = float(np.float16(np.sum(x, dtype=np.float64)))
    if hasattr(add, "_pairs"):
        add._pairs.append((total, 0.0))
    return total


# %% wrong: loss_summed_apart
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


# %% wrong: not_by_add
"""Sums in float64, and lets add have a look at each element."""


def careful_sum(x, add):
    total = 0.0
    for element in x:
        add(element, 0)
        total += float(element)
    return total


# %% wrong: one_after_another
"""Plain addition from left to right."""


def careful_sum(x, add):
    total = 0.0
    for element in x:
        total = add(total, element)
    return total


# %% wrong: one_element_not_added
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


# %% wrong: other_arguments
"""Halves the elements first, which add does not take."""


def careful_sum(x, add):
    total = 0.0
    for element in x:
        total = add(total, float(element) / 3)
    return add(add(total, total), total)


# %% wrong: pairs
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


# %% wrong: pairs_by_recursion
"""A tree of additions by halves."""


def careful_sum(x, add):
    if len(x) == 0:
        return 0.0
    if len(x) == 1:
        return add(x[0], 0)
    half = len(x) // 2
    return add(careful_sum(x[:half], add), careful_sum(x[half:], add))


# %% wrong: sorted_first
"""Adds the small ones first."""


def careful_sum(x, add):
    total = 0.0
    for element in sorted(x, key=abs):
        total = add(total, element)
    return total


# %% wrong: too_many_additions
"""The exact loss by six additions (TwoSum), which is more than are allowed."""


def careful_sum(x, add):
    total = owed = 0.0
    for element in x:
        y = add(element, owed)
        t = add(total, y)
        of_y = add(t, -total)
        of_total = add(t, -of_y)
        owed = add(add(total, -of_total), add(y, -of_y))
        total = t
    return total


# %% wrong: pairs_of_sorted
"""Sorts by size, then adds in pairs."""


def careful_sum(x, add):
    row = sorted(x.tolist(), key=abs)
    if len(row) < 2:
        return add(row[0], 0) if row else 0.0
    while len(row) > 1:
        pairs = [add(row[i], row[i + 1]) for i in range(0, len(row) - 1, 2)]
        row = pairs + row[len(row) // 2 * 2 :]
    return row[0]


# %% wrong: sorts_in_place
"""Compensates right, but sorts its argument first."""


def careful_sum(x, add):
    x.sort()
    total = too_much = 0.0
    for element in x:
        y = add(element, -too_much)
        t = add(total, y)
        too_much = add(add(t, -total), -y)
        total = t
    return total
