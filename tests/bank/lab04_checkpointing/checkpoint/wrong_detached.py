"""Forward without a graph, and no backward. [earns 0]"""

import torch


def checkpoint(fn, *args):
    with torch.no_grad():
        return fn(*args)
