# %% right: graph_walk
"""The graph is walked from the output, and each node's saved attributes are read."""

import torch


def saved_bytes(fn, *inputs):
    out = fn(*inputs)
    outputs = out if isinstance(out, (tuple, list)) else [out]
    waiting = [o.grad_fn for o in outputs if o.grad_fn is not None]
    seen, storages = set(), {}
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        waiting += [following for following, _ in node.next_functions if following is not None]
        for name in dir(node):
            if not name.startswith("_saved_"):
                continue
            value = getattr(node, name)
            if not torch.is_tensor(value):
                continue
            if value.dim() == 0 and value.dtype == torch.float64:
                continue  # a number written in Python
            root = value._base if value._base is not None else value
            if isinstance(root, torch.nn.Parameter):
                continue
            storages[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
    return sum(storages.values())


# %% right: hooks
"""Hooks whose packed holders are referenced weakly."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


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
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% right: weak_values
"""A WeakValueDictionary of packed boxes, and all parameters found by the garbage collector."""

import gc
import itertools
import weakref

import torch


class Box(list):
    pass


def saved_bytes(fn, *inputs):
    boxes = weakref.WeakValueDictionary()
    number = itertools.count()

    def pack(tensor):
        box = Box([tensor.detach()])
        boxes[next(number)] = box
        return box

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box[0]):
        result = fn(*inputs)
    parameters = {
        thing.untyped_storage().data_ptr()
        for thing in gc.get_objects()
        if type(thing) is torch.nn.Parameter
    }
    kept = {}
    for box in boxes.values():
        storage = box[0].untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = len(storage)
    assert result is not None
    return sum(kept.values())


# %% wrong: buffers_left_out
"""Leaves out what a module has registered, buffers too."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


def saved_bytes(fn, *inputs):
    holders = []

    def pack(tensor):
        holder = Holder(tensor)
        holders.append(weakref.ref(holder))
        return holder

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
        output = fn(*inputs)
    sizes = {}
    own = list(fn.buffers()) if isinstance(fn, nn.Module) else []
    given = {x.untyped_storage().data_ptr() for x in own}
    for reference in holders:
        holder = reference()
        if holder is None:
            continue
        tensor = holder.tensor
        if holder.is_parameter or tensor.untyped_storage().data_ptr() in given:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% wrong: counted_twice
"""Adds up every saved tensor, a shared storage twice."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


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
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[len(sizes)] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% wrong: counted_twice_and_dropped
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


# %% wrong: dropped_too
"""Counts what was saved for a part of the graph that is gone."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


def saved_bytes(fn, *inputs):
    holders = []

    def pack(tensor):
        holder = Holder(tensor)
        holders.append(holder)
        return holder

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
        output = fn(*inputs)
    sizes = {}
    for reference in holders:
        holder = reference
        tensor = holder.tensor
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% wrong: elements
"""Returns elements."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


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
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes() // tensor.element_size()
    del output
    return sum(sizes.values())


# %% wrong: first_saver_only
"""Remembers for each storage the first that saved it."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


def saved_bytes(fn, *inputs):
    holders = {}

    def pack(tensor):
        holder = Holder(tensor)
        holders.setdefault(tensor.untyped_storage().data_ptr(), weakref.ref(holder))
        return holder

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
        output = fn(*inputs)
    sizes = {}
    for reference in holders.values():
        holder = reference()
        if holder is None:
            continue
        tensor = holder.tensor
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% wrong: four_bytes_each
"""Takes every element for 4 bytes."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


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
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = 4 * (storage.nbytes() // tensor.element_size())
    del output
    return sum(sizes.values())


# %% wrong: inputs_left_out
"""Leaves the inputs out."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


def saved_bytes(fn, *inputs):
    holders = []

    def pack(tensor):
        holder = Holder(tensor)
        holders.append(weakref.ref(holder))
        return holder

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
        output = fn(*inputs)
    sizes = {}
    given = {x.untyped_storage().data_ptr() for x in inputs}
    for reference in holders:
        holder = reference()
        if holder is None:
            continue
        tensor = holder.tensor
        if holder.is_parameter or tensor.untyped_storage().data_ptr() in given:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% wrong: last_saver_only
"""Remembers for each storage the last that saved it."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


def saved_bytes(fn, *inputs):
    holders = {}

    def pack(tensor):
        holder = Holder(tensor)
        holders[tensor.untyped_storage().data_ptr()] = weakref.ref(holder)
        return holder

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
        output = fn(*inputs)
    sizes = {}
    for reference in holders.values():
        holder = reference()
        if holder is None:
            continue
        tensor = holder.tensor
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% wrong: numbers_too
"""Walks the graph and counts numbers written in Python."""

import torch


def saved_bytes(fn, *inputs):
    out = fn(*inputs)
    outputs = out if isinstance(out, (tuple, list)) else [out]
    waiting = [o.grad_fn for o in outputs if o.grad_fn is not None]
    seen, storages = set(), {}
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        waiting += [following for following, _ in node.next_functions if following is not None]
        for name in dir(node):
            if not name.startswith("_saved_"):
                continue
            value = getattr(node, name)
            if not torch.is_tensor(value):
                continue
            root = value._base if value._base is not None else value
            if isinstance(root, torch.nn.Parameter):
                continue
            storages[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
    return sum(storages.values())


# %% wrong: output_dropped
"""Lets the output go before it counts."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


def saved_bytes(fn, *inputs):
    holders = []

    def pack(tensor):
        holder = Holder(tensor)
        holders.append(weakref.ref(holder))
        return holder

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
        fn(*inputs)
    sizes = {}
    for reference in holders:
        holder = reference()
        if holder is None:
            continue
        tensor = holder.tensor
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


# %% wrong: outputs_left_out
"""Leaves the function's result out."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


def saved_bytes(fn, *inputs):
    holders = []

    def pack(tensor):
        holder = Holder(tensor)
        holders.append(weakref.ref(holder))
        return holder

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
        output = fn(*inputs)
    sizes = {}
    results = output if isinstance(output, tuple) else (output,)
    given = {x.untyped_storage().data_ptr() for x in results}
    for reference in holders:
        holder = reference()
        if holder is None:
            continue
        tensor = holder.tensor
        if holder.is_parameter or tensor.untyped_storage().data_ptr() in given:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% wrong: parameters_themselves
"""Leaves views of parameters out, but not parameters."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


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
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% wrong: parameters_too
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


# %% wrong: parameters_views
"""Leaves parameters out, but not their views."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor
        self.is_parameter = isinstance(root, nn.Parameter)


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
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% wrong: slices_apart
"""Tells storages apart by tensor.data_ptr(), which each slice has its own of."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


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
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[tensor.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% wrong: trainable_only
"""Leaves only parameters out that require a gradient."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter) and root.requires_grad


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
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% wrong: views_as_small
"""Counts a view's own elements instead of its storage."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        root = tensor if tensor._base is None else tensor._base
        self.is_parameter = isinstance(root, nn.Parameter)


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
        if holder.is_parameter:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = tensor.nbytes
    del output
    return sum(sizes.values())


# %% wrong: views_left_out
"""Leaves out views of inputs as it does those of parameters."""

import weakref

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds this
        self.is_left_out = tensor._base is not None or isinstance(tensor, nn.Parameter)


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
        if holder.is_left_out:
            continue
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    del output
    return sum(sizes.values())


# %% wrong: floats_only
"""Counts floats alone, not an embedding's indices or a mask."""
import weakref

import torch
from torch import nn


class Box:
    def __init__(self, tensor):
        self.tensor = tensor.detach()
        whole = tensor if tensor._base is None else tensor._base
        self.counts = not isinstance(whole, nn.Parameter) and tensor.is_floating_point()


def saved_bytes(fn, *inputs):
    boxes = weakref.WeakSet()

    def pack(tensor):
        box = Box(tensor)
        boxes.add(box)
        return box

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor):
        result = fn(*inputs)
    storages = [box.tensor.untyped_storage() for box in boxes if box.counts]
    del result
    return sum({s.data_ptr(): s.nbytes() for s in storages}.values())


# %% wrong: constants_views_left_out
"""Leaves out views of tensors that require no gradient."""
import weakref
import torch
from torch import nn
class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()
        self.base = tensor._base
        self.is_parameter = isinstance(tensor, nn.Parameter)
def saved_bytes(fn, *inputs):
    references = []
    def pack(tensor):
        saved = Saved(tensor)
        references.append(weakref.ref(saved))
        return saved
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        result = fn(*inputs)
    held = [s for s in (r() for r in references) if s is not None]
    own = [s for s in held if not s.is_parameter and not isinstance(s.base, nn.Parameter)]
    return sum({s.tensor.untyped_storage().data_ptr(): s.tensor.untyped_storage().nbytes() for s in own if s.base is None or s.base.requires_grad}.values())


# %% wrong: results_views_left_out
"""Counts a view only if it is one of a leaf."""
import weakref
import torch
from torch import nn
class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()
        self.base = tensor._base
        self.is_parameter = isinstance(tensor, nn.Parameter)
def saved_bytes(fn, *inputs):
    references = []
    def pack(tensor):
        saved = Saved(tensor)
        references.append(weakref.ref(saved))
        return saved
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        result = fn(*inputs)
    held = [s for s in (r() for r in references) if s is not None]
    own = [s for s in held if not s.is_parameter and not isinstance(s.base, nn.Parameter)]
    return sum({s.tensor.untyped_storage().data_ptr(): s.tensor.untyped_storage().nbytes() for s in held if not s.is_parameter and s.base is None or s.base is not None and not isinstance(s.base, nn.Parameter) and s.base.is_leaf}.values())


# %% wrong: shapes_apart
"""Tells tensors apart by their storage and their shape."""

import weakref

import torch
from torch import nn


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()
        self.base = tensor._base
        self.is_parameter = isinstance(tensor, nn.Parameter)


def saved_bytes(fn, *inputs) -> int:
    references = []

    def pack(tensor):
        saved = Saved(tensor)
        references.append(weakref.ref(saved))
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        result = fn(*inputs)
    held = [saved for saved in (reference() for reference in references) if saved is not None]
    sizes = {}
    for saved in held:
        if not saved.is_parameter and not isinstance(saved.base, nn.Parameter):
            storage = saved.tensor.untyped_storage()
            sizes[storage.data_ptr(), saved.tensor.shape] = storage.nbytes()
    return sum(sizes.values())


# %% wrong: single_values_left_out
"""Leaves out every tensor without dimensions, as if it were a number."""

import weakref

import torch
from torch import nn


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()
        self.base = tensor._base
        self.is_parameter = isinstance(tensor, nn.Parameter)


def saved_bytes(fn, *inputs) -> int:
    references = []

    def pack(tensor):
        saved = Saved(tensor)
        references.append(weakref.ref(saved))
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        result = fn(*inputs)
    held = [saved for saved in (reference() for reference in references) if saved is not None]
    storages = [
        saved.tensor.untyped_storage()
        for saved in held
        if not saved.is_parameter and not isinstance(saved.base, nn.Parameter)
        if saved.tensor.dim() > 0
    ]
    sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
    del result
    return sum(sizes.values())
