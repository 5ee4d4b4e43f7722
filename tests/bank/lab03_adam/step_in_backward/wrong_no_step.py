"""Registers nothing."""


class Handle:
    def remove(self):
        pass


def step_in_backward(params, lr=1e-3):
    return Handle()
