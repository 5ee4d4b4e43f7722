"""A tree of additions by halves."""


def careful_sum(x, add):
    if len(x) == 0:
        return 0.0
    if len(x) == 1:
        return add(x[0], 0)
    half = len(x) // 2
    return add(careful_sum(x[:half], add), careful_sum(x[half:], add))
