# %% right: as_strided
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


# %% right: back_once
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


# %% right: class
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


# %% right: del
"""A parcel with __del__, found again by its storage."""
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
        return rebuild(parcel.host.get(parcel.handle), layout)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: address_as_identity
"""Takes the address for a storage's name. [earns 1]"""
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
    known = {}

    def pack(tensor):
        if is_parameter(tensor):
            return tensor
        address = tensor.untyped_storage().data_ptr()
        if address not in known:
            known[address] = Parcel(host, tensor)
        return known[address], layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        parcel, layout = packed
        return rebuild(parcel.host.get(parcel.handle), layout)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: duplicates
"""Puts every saved tensor, whether it is there or not. [earns 4]"""
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
        return Parcel(host, tensor), layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        parcel, layout = packed
        return rebuild(parcel.host.get(parcel.handle), layout)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: fetched_too_often
"""Gets every storage three times, and uses the last one. [earns 4]"""
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
        for _ in range(3):
            flat = parcel.host.get(parcel.handle)
        return rebuild(flat, layout)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: put_and_get
"""The text's short first version: pack puts, unpack gets. [earns 3]"""
from contextlib import contextmanager

from torch.autograd.graph import saved_tensors_hooks


@contextmanager
def swap_saved_tensors(host):
    def pack(tensor):
        return host.put(tensor)

    def unpack(packed):
        return host.get(packed)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: freed_at_first_use
"""Counts the uses of each storage and gives it up at the last unpack. [earns 4]"""
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
            parcel.uses, parcel.freed = 0, False
            known[storage] = weakref.ref(parcel)
        parcel.uses += 1
        return parcel, layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        parcel, layout = packed
        flat = host.get(parcel.handle)
        if parcel.freed:
            return rebuild(flat.zero_(), layout)
        parcel.uses -= 1
        if parcel.uses == 0:
            parcel.freed = True
        return rebuild(flat, layout)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: frees_after_the_last_use
"""Frees by hand after the last unpack, so never without a backward. [earns 3]"""
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
        if storage not in known:
            known[storage] = [host.put(whole_storage(tensor)), 0]
        known[storage][1] += 1
        return known[storage], layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        entry, layout = packed
        flat = host.get(entry[0])
        entry[1] -= 1
        if entry[1] == 0:
            host.free(entry[0])
        return rebuild(flat, layout)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: goes_on_after_the_block
"""Never leaves the hooks. [earns 4]"""
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
        return rebuild(parcel.host.get(parcel.handle), layout)

    saved_tensors_hooks(pack, unpack).__enter__()
    yield


# %% wrong: never_freed
"""Frees nothing. [earns 4]"""
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
        if storage not in known:
            known[storage] = host.put(whole_storage(tensor))
        return known[storage], layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        return rebuild(host.get(packed[0]), packed[1])

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: parameters_too
"""Moves parameters as well. [earns 4]"""
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
        return rebuild(parcel.host.get(parcel.handle), layout)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: stays_on_the_device
"""The dict of storages keeps them alive. [earns 2]"""
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
    known = {}

    def pack(tensor):
        if is_parameter(tensor):
            return tensor
        storage = tensor.untyped_storage()
        if storage not in known:
            known[storage] = Parcel(host, tensor)
        return known[storage], layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        parcel, layout = packed
        return rebuild(parcel.host.get(parcel.handle), layout)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: swaps_nothing
"""Keeps everything on the device. [earns 1]"""
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
        return tensor

    def unpack(packed):
        return packed

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: views_not_restored
"""Gives back the right shape over the storage's first bytes. [earns 4]"""
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
        flat = host.get(parcel.handle).view(layout.dtype)
        count = 1
        for size in layout.shape:
            count *= size
        return flat.repeat(1 + count // max(1, len(flat)))[:count].reshape(layout.shape)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: views_of_parameters_too
"""Knows parameters, but not their views. [earns 4]"""
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
        if isinstance(tensor, torch.nn.Parameter):
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
        return rebuild(parcel.host.get(parcel.handle), layout)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: leaves_stay
"""Takes every leaf with a gradient for a parameter. [earns 4]"""
import weakref
from contextlib import contextmanager

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from peakmem.tiers import layout_of, rebuild, whole_storage


class Entry:
    def __init__(self, tensor, host):
        self.handle = host.put(whole_storage(tensor))
        weakref.finalize(self, host.free, self.handle)


class Storages:
    def __init__(self, host):
        self.host, self.entries = host, weakref.WeakKeyDictionary()

    def entry(self, tensor):
        storage = tensor.untyped_storage()
        entry = self.entries.get(storage, lambda: None)()
        if entry is None:
            entry = Entry(tensor, self.host)
            self.entries[storage] = weakref.ref(entry)
        return entry


@contextmanager
def swap_saved_tensors(host):
    storages = Storages(host)

    def pack(tensor):
        owner = tensor if tensor._base is None else tensor._base
        if owner.is_leaf and owner.requires_grad:
            return tensor
        return storages.entry(tensor), layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        entry, layout = packed
        return rebuild(host.get(entry.handle), layout)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: views_stay
"""Lets every view stay, as if it were a parameter's. [earns 2]"""
import weakref
from contextlib import contextmanager

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from peakmem.tiers import layout_of, rebuild, whole_storage


class Entry:
    def __init__(self, tensor, host):
        self.handle = host.put(whole_storage(tensor))
        weakref.finalize(self, host.free, self.handle)


class Storages:
    def __init__(self, host):
        self.host, self.entries = host, weakref.WeakKeyDictionary()

    def entry(self, tensor):
        storage = tensor.untyped_storage()
        entry = self.entries.get(storage, lambda: None)()
        if entry is None:
            entry = Entry(tensor, self.host)
            self.entries[storage] = weakref.ref(entry)
        return entry


@contextmanager
def swap_saved_tensors(host):
    storages = Storages(host)

    def pack(tensor):
        owner = tensor if tensor._base is None else tensor._base
        if isinstance(owner, nn.Parameter) or tensor._base is not None:
            return tensor
        return storages.entry(tensor), layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        entry, layout = packed
        return rebuild(host.get(entry.handle), layout)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: others_stay
"""Swaps floating-point tensors only. [earns 4]"""
import weakref
from contextlib import contextmanager

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from peakmem.tiers import layout_of, rebuild, whole_storage


class Entry:
    def __init__(self, tensor, host):
        self.handle = host.put(whole_storage(tensor))
        weakref.finalize(self, host.free, self.handle)


class Storages:
    def __init__(self, host):
        self.host, self.entries = host, weakref.WeakKeyDictionary()

    def entry(self, tensor):
        storage = tensor.untyped_storage()
        entry = self.entries.get(storage, lambda: None)()
        if entry is None:
            entry = Entry(tensor, self.host)
            self.entries[storage] = weakref.ref(entry)
        return entry


@contextmanager
def swap_saved_tensors(host):
    storages = Storages(host)

    def pack(tensor):
        owner = tensor if tensor._base is None else tensor._base
        if isinstance(owner, nn.Parameter) or not tensor.is_floating_point():
            return tensor
        return storages.entry(tensor), layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        entry, layout = packed
        return rebuild(host.get(entry.handle), layout)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: offset_forgotten
"""Restores shape and strides, and begins at the storage's first value. [earns 4]"""
import weakref
from contextlib import contextmanager

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from peakmem.tiers import layout_of, whole_storage


class Entry:
    def __init__(self, tensor, host):
        self.handle = host.put(whole_storage(tensor))
        weakref.finalize(self, host.free, self.handle)


class Storages:
    def __init__(self, host):
        self.host, self.entries = host, weakref.WeakKeyDictionary()

    def entry(self, tensor):
        storage = tensor.untyped_storage()
        entry = self.entries.get(storage, lambda: None)()
        if entry is None:
            entry = Entry(tensor, self.host)
            self.entries[storage] = weakref.ref(entry)
        return entry


@contextmanager
def swap_saved_tensors(host):
    storages = Storages(host)

    def pack(tensor):
        owner = tensor if tensor._base is None else tensor._base
        if isinstance(owner, nn.Parameter):
            return tensor
        return storages.entry(tensor), layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        entry, layout = packed
        return host.get(entry.handle).view(layout.dtype).as_strided(layout.shape, layout.stride)

    with saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: small_ones_stay
"""Leaves tensors of less than 1 MiB on the device. [earns 3]"""
import weakref
from contextlib import contextmanager

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from peakmem.tiers import layout_of, rebuild, whole_storage


class Entry:
    def __init__(self, tensor, host):
        self.handle = host.put(whole_storage(tensor))
        weakref.finalize(self, host.free, self.handle)


class Storages:
    def __init__(self, host):
        self.host = host
        self.entries = weakref.WeakKeyDictionary()

    def entry(self, tensor):
        storage = tensor.untyped_storage()
        entry = self.entries.get(storage, lambda: None)()
        if entry is None:
            entry = Entry(tensor, self.host)
            self.entries[storage] = weakref.ref(entry)
        return entry


@contextmanager
def swap_saved_tensors(host):
    storages = Storages(host)

    def pack(tensor):
        owner = tensor if tensor._base is None else tensor._base
        if isinstance(owner, nn.Parameter) or tensor.nbytes < 2**20:
            return tensor
        return storages.entry(tensor), layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        entry, layout = packed
        return rebuild(host.get(entry.handle), layout)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: id_as_identity
"""Tells storages apart by their id. [earns 2]"""
import weakref
from contextlib import contextmanager

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from peakmem.tiers import layout_of, rebuild, whole_storage


class Entry:
    def __init__(self, tensor, host):
        self.handle = host.put(whole_storage(tensor))
        weakref.finalize(self, host.free, self.handle)


class Storages:
    def __init__(self, host):
        self.host = host
        self.entries = weakref.WeakKeyDictionary()

    def entry(self, tensor):
        storage = tensor.untyped_storage()
        entry = self.entries.get(storage, lambda: None)()
        if entry is None:
            entry = Entry(tensor, self.host)
            self.entries[storage] = weakref.ref(entry)
        return entry


@contextmanager
def swap_saved_tensors(host):
    entries = {}

    def pack(tensor):
        owner = tensor if tensor._base is None else tensor._base
        if isinstance(owner, nn.Parameter):
            return tensor
        key = id(tensor.untyped_storage())
        if key not in entries:
            entries[key] = Entry(tensor, host)
        return entries[key], layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        entry, layout = packed
        return rebuild(host.get(entry.handle), layout)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: another_host
"""Knows the entries of all blocks together, whatever host they are on. [earns 4]"""
import weakref
from contextlib import contextmanager

import torch
from torch import nn

from peakmem.tiers import layout_of, rebuild, whole_storage

_known = weakref.WeakKeyDictionary()


class Entry:
    def __init__(self, tensor, host):
        self.host = host
        self.handle = host.put(whole_storage(tensor))
        weakref.finalize(self, host.free, self.handle)


@contextmanager
def swap_saved_tensors(host):
    def pack(tensor):
        owner = tensor if tensor._base is None else tensor._base
        if isinstance(owner, nn.Parameter):
            return tensor
        storage = tensor.untyped_storage()
        entry = _known.get(storage, lambda: None)()
        if entry is None:
            entry = Entry(tensor, host)
            _known[storage] = weakref.ref(entry)
        return entry, layout_of(tensor)

    def unpack(packed):
        return packed if isinstance(packed, torch.Tensor) else rebuild(packed[0].host.get(packed[0].handle), packed[1])

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% right: cycle
"""The entry is in a reference cycle, so it dies only when Python collects garbage."""
import weakref
from contextlib import contextmanager

import torch
from torch import nn

from peakmem.tiers import layout_of, rebuild, whole_storage


class Entry:
    def __init__(self, tensor, host):
        self.handle = host.put(whole_storage(tensor))
        self.me = self
        weakref.finalize(self, host.free, self.handle)


@contextmanager
def swap_saved_tensors(host):
    known = weakref.WeakKeyDictionary()

    def pack(tensor):
        owner = tensor if tensor._base is None else tensor._base
        if isinstance(owner, nn.Parameter):
            return tensor
        storage = tensor.untyped_storage()
        entry = known.get(storage, lambda: None)()
        if entry is None:
            entry = Entry(tensor, host)
            known[storage] = weakref.ref(entry)
        return entry, layout_of(tensor)

    def unpack(packed):
        return packed if isinstance(packed, torch.Tensor) else rebuild(host.get(packed[0].handle), packed[1])

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% right: four_kept
"""Keeps the last four that came back: 6 activations in all, just within the budget."""
import weakref
from contextlib import contextmanager

import torch
from torch import nn

from peakmem.tiers import layout_of, rebuild, whole_storage


class Entry:
    def __init__(self, tensor, host):
        self.handle = host.put(whole_storage(tensor))
        weakref.finalize(self, host.free, self.handle)


@contextmanager
def swap_saved_tensors(host):
    entries = weakref.WeakKeyDictionary()
    lately = []  # (weak reference to an entry, its bytes)

    def pack(tensor):
        if isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter):
            return tensor
        storage = tensor.untyped_storage()
        entry = entries.get(storage, lambda: None)()
        if entry is None:
            entry = Entry(tensor, host)
            entries[storage] = weakref.ref(entry)
        return entry, layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        entry, layout = packed
        for known, fetched in lately:
            if known() is entry:
                return rebuild(fetched, layout)
        fetched = host.get(entry.handle)
        lately.append((weakref.ref(entry), fetched))
        del lately[:-4]
        return rebuild(fetched, layout)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% wrong: held_in_the_block
"""A list holds all entries until the block ends. [earns 4]"""
import weakref
from contextlib import contextmanager
import torch
from torch import nn
from peakmem.tiers import layout_of, rebuild, whole_storage
class Entry:
    def __init__(self, tensor, host):
        self.handle = host.put(whole_storage(tensor))
        weakref.finalize(self, host.free, self.handle)
class Storages:
    def __init__(self, host):
        self.host = host
        self.entries = weakref.WeakKeyDictionary()
    def entry(self, tensor):
        storage = tensor.untyped_storage()
        entry = self.entries.get(storage, lambda: None)()
        if entry is None:
            entry = Entry(tensor, self.host)
            self.entries[storage] = weakref.ref(entry)
        return entry
@contextmanager
def swap_saved_tensors(host):
    storages, held = Storages(host), []
    def pack(tensor):
        owner = tensor if tensor._base is None else tensor._base
        if isinstance(owner, nn.Parameter):
            return tensor
        held.append(storages.entry(tensor))
        return held[-1], layout_of(tensor)
    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        entry, layout = packed
        return rebuild(host.get(entry.handle), layout)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield
    held.clear()


# %% wrong: frozen_parameters_too
"""Takes a frozen parameter for no parameter. [earns 4]"""
import weakref
from contextlib import contextmanager
import torch
from torch import nn
from peakmem.tiers import layout_of, rebuild, whole_storage
class Entry:
    def __init__(self, tensor, host):
        self.handle = host.put(whole_storage(tensor))
        weakref.finalize(self, host.free, self.handle)
class Storages:
    def __init__(self, host):
        self.host = host
        self.entries = weakref.WeakKeyDictionary()
    def entry(self, tensor):
        storage = tensor.untyped_storage()
        entry = self.entries.get(storage, lambda: None)()
        if entry is None:
            entry = Entry(tensor, self.host)
            self.entries[storage] = weakref.ref(entry)
        return entry
@contextmanager
def swap_saved_tensors(host):
    storages = Storages(host)
    def pack(tensor):
        owner = tensor if tensor._base is None else tensor._base
        if isinstance(owner, nn.Parameter) and owner.requires_grad:
            return tensor
        return storages.entry(tensor), layout_of(tensor)
    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        entry, layout = packed
        return rebuild(host.get(entry.handle), layout)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield
