"""Calls the function and leaves it at that. [earns 4]"""


def checkpoint(fn, *args):
    return fn(*args)
