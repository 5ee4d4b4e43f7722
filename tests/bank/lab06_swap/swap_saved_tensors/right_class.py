"""A class with __enter__ and __exit__, and weak values by the storage's object."""
import weakref
from contextlib import contextmanager

import torch
from torch.autograd.graph import saved_tensors_hooks

from peakmem.tiers import layout_of, rebuild, whole_storage


def is_parameter(tensor):
    return isinstance(tensor, torch.nn.Parameter) or isinstance(tensor._base, torch.nn.Parameter)


class Stored:
    pass


class swap_saved_tensors:
    def __init__(self, host):
        self.host, self.stored = host, []
        self.hooks = saved_tensors_hooks(self.pack, self.unpack)

    def __enter__(self):
        return self.hooks.__enter__()

    def __exit__(self, *error):
        self.stored = []
        return self.hooks.__exit__(*error)

    def pack(self, tensor):
        if is_parameter(tensor):
            return None, tensor
        storage = tensor.untyped_storage()
        self.stored = [pair for pair in self.stored if pair[0]() and pair[1]()]
        for its_storage, its_parcel in self.stored:
            if its_storage() is storage:
                return its_parcel(), layout_of(tensor)
        stored = Stored()
        stored.handle = self.host.put(whole_storage(tensor))
        weakref.finalize(stored, self.host.free, stored.handle)
        self.stored.append((weakref.ref(storage), weakref.ref(stored)))
        return stored, layout_of(tensor)

    def unpack(self, packed):
        stored, what = packed
        return what if stored is None else rebuild(self.host.get(stored.handle), what)
