"""Without the helpers: bytes by set_, and as_strided on a view of them."""
import weakref
from contextlib import contextmanager

import torch
from torch.autograd.graph import saved_tensors_hooks


def is_parameter(tensor):
    return isinstance(tensor, torch.nn.Parameter) or isinstance(tensor._base, torch.nn.Parameter)


class Below:
    def __init__(self, host, storage):
        flat = torch.empty(0, dtype=torch.uint8).set_(storage)
        handle = host.put(flat)
        self.get = lambda: host.get(handle)
        self.finalizer = weakref.finalize(self, host.free, handle)


@contextmanager
def swap_saved_tensors(host):
    below = weakref.WeakKeyDictionary()

    def pack(tensor):
        if is_parameter(tensor):
            return lambda: tensor
        storage = tensor.untyped_storage()
        there = below.get(storage, lambda: None)()
        if there is None:
            there = Below(host, storage)
            below[storage] = weakref.ref(there)
        dtype, place = tensor.dtype, (tensor.size(), tensor.stride(), tensor.storage_offset())
        return lambda: there.get().view(dtype).as_strided(*place)

    with saved_tensors_hooks(pack, lambda load: load()):
        yield
