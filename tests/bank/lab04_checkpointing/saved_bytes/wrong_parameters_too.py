"""Counts parameters as well."""

import weakref

import torch


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this


def saved_bytes(fn, *inputs):
    holders = []

    def pack(tensor):
        holder = Holder(tensor)
        holders.append(weakref.ref(holder))
        return holder

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
        output = fn(*inputs)
    sizes = {}
    for reference in holders:
        holder = reference()
        if holder is None:
            continue
        tensor = holder.tensor
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())
