"""Keeps what came back for as long as backward holds it: a weak reference to it."""
import weakref
from contextlib import contextmanager

import torch
from torch.autograd.graph import saved_tensors_hooks

from peakmem.tiers import layout_of, rebuild, whole_storage


class Parcel:
    def __init__(self, host, tensor):
        self.host = host
        self.handle = host.put(whole_storage(tensor))

    def __del__(self):
        self.host.free(self.handle)


def is_parameter(tensor):
    return isinstance(tensor, torch.nn.Parameter) or isinstance(tensor._base, torch.nn.Parameter)


@contextmanager
def swap_saved_tensors(host):
    known = weakref.WeakKeyDictionary()

    def pack(tensor):
        if is_parameter(tensor):
            return tensor
        storage = tensor.untyped_storage()
        parcel = known[storage]() if storage in known else None
        if parcel is None:
            parcel = Parcel(host, tensor)
            known[storage] = weakref.ref(parcel)
        return parcel, layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        parcel, layout = packed
        reference = getattr(parcel, "up", None)
        flat = reference() if reference else None
        if flat is None:
            flat = host.get(parcel.handle).untyped_storage()
            parcel.up = weakref.ref(flat)
        return torch.empty(0, dtype=layout.dtype).set_(flat, layout.offset, layout.shape, layout.stride)

    with saved_tensors_hooks(pack, unpack):
        yield
