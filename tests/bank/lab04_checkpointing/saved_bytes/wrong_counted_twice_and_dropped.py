"""Adds up all that passes the hook."""

import torch


def saved_bytes(fn, *inputs):
    total = 0

    def pack(tensor):
        nonlocal total
        root = tensor if tensor._base is None else tensor._base
        if not isinstance(root, torch.nn.Parameter):
            total += tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        fn(*inputs)
    return total
