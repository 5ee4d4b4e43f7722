# %% right: pytree
"""torch's own walk through containers; the result is a numpy integer."""
import numpy as np
from torch.utils import _pytree


def measured_state_bytes(optimizer):
    leaves = _pytree.tree_leaves([dict(own) for own in optimizer.state.values()])
    storages = {x.untyped_storage().data_ptr(): x.untyped_storage().size() for x in leaves if hasattr(x, "untyped_storage")}
    return np.int64(sum(storages.values()))


# %% right: recursion
"""A recursion with a dict of storages."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def visit(thing, depth=0):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        elif isinstance(thing, dict):
            for part in thing.values():
                visit(part, depth + 1)
        elif depth == 0 or isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part, depth + 1)

    visit(list(optimizer.state.values()))
    return sum(found.values())


# %% right: stack
"""A stack of things still to be looked at; storages are told apart by _cdata."""
import torch


def measured_state_bytes(optimizer):
    todo = list(optimizer.state.values())
    seen, total = set(), 0
    while todo:
        thing = todo.pop()
        if isinstance(thing, torch.Tensor):
            storage = thing.untyped_storage()
            if storage._cdata not in seen:
                seen.add(storage._cdata)
                total += len(storage)
        elif isinstance(thing, dict):
            todo.extend(thing.values())
        elif isinstance(thing, (list, tuple)):
            todo.extend(thing)
    return total


# %% right: state_dict
"""Asks the optimizer for its state_dict()."""

import torch


def measured_state_bytes(optimizer):
    found, waiting = {}, [optimizer.state_dict()["state"]]
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, torch.Tensor):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        elif isinstance(thing, dict):
            waiting.extend(thing.values())
        elif isinstance(thing, (list, tuple)):
            waiting.extend(thing)
    return sum(found.values())


# %% wrong: changes_the_state
"""Reads the state of every parameter, which makes entries."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def visit(thing, depth=0):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        elif isinstance(thing, dict):
            for part in thing.values():
                visit(part, depth + 1)
        elif depth == 0 or isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part, depth + 1)

    visit([optimizer.state[p] for g in optimizer.param_groups for p in g['params']])
    return sum(found.values())


# %% wrong: counters_left_out
"""Leaves out tensors of one value."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def visit(thing, depth=0):
        if torch.is_tensor(thing) and thing.numel() == 1:
            pass
        elif torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        elif isinstance(thing, dict):
            for part in thing.values():
                visit(part, depth + 1)
        elif depth == 0 or isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part, depth + 1)

    visit(list(optimizer.state.values()))
    return sum(found.values())


# %% wrong: dicts_left_out
"""Does not look into dicts within a state."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def visit(thing, depth=0):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        elif isinstance(thing, dict) and depth > 1:
            pass
        elif isinstance(thing, dict):
            for part in thing.values():
                visit(part, depth + 1)
        elif depth == 0 or isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part, depth + 1)

    visit(list(optimizer.state.values()))
    return sum(found.values())


# %% wrong: elements
"""Counts values."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def visit(thing, depth=0):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes() // thing.element_size()
        elif isinstance(thing, dict):
            for part in thing.values():
                visit(part, depth + 1)
        elif depth == 0 or isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part, depth + 1)

    visit(list(optimizer.state.values()))
    return sum(found.values())


# %% wrong: formula
"""Works it out instead of looking."""


def measured_state_bytes(optimizer):
    return sum(8 * p.numel() for group in optimizer.param_groups for p in group["params"])


# %% wrong: lists_left_out
"""Does not look into lists."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def visit(thing, depth=0):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        elif isinstance(thing, dict):
            for part in thing.values():
                visit(part, depth + 1)
        elif depth == 0 or isinstance(thing, tuple):
            for part in thing:
                visit(part, depth + 1)

    visit(list(optimizer.state.values()))
    return sum(found.values())


# %% wrong: not_nested
"""Looks at a parameter's own values only."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def visit(thing, depth=0):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        elif depth > 1:
            pass
        elif isinstance(thing, dict):
            for part in thing.values():
                visit(part, depth + 1)
        elif depth == 0 or isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part, depth + 1)

    visit(list(optimizer.state.values()))
    return sum(found.values())


# %% wrong: parameters_too
"""Goes through the keys as well."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def visit(thing, depth=0):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        elif isinstance(thing, dict):
            for part in thing.values():
                visit(part, depth + 1)
        elif depth == 0 or isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part, depth + 1)

    visit(list(optimizer.state.values()) + [p for g in optimizer.param_groups for p in g['params']])
    return sum(found.values())


# %% wrong: shared_counted_twice
"""Counts a storage for each of its tensors."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def visit(thing, depth=0):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[len(found)] = storage.nbytes()
        elif isinstance(thing, dict):
            for part in thing.values():
                visit(part, depth + 1)
        elif depth == 0 or isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part, depth + 1)

    visit(list(optimizer.state.values()))
    return sum(found.values())


# %% wrong: tuples_left_out
"""Does not look into tuples."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def visit(thing, depth=0):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        elif isinstance(thing, dict):
            for part in thing.values():
                visit(part, depth + 1)
        elif depth == 0 or isinstance(thing, list):
            for part in thing:
                visit(part, depth + 1)

    visit(list(optimizer.state.values()))
    return sum(found.values())


# %% wrong: views_counted
"""Adds up the views' bytes."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def visit(thing, depth=0):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[len(found)] = thing.nbytes
        elif isinstance(thing, dict):
            for part in thing.values():
                visit(part, depth + 1)
        elif depth == 0 or isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part, depth + 1)

    visit(list(optimizer.state.values()))
    return sum(found.values())


# %% wrong: own_nbytes
"""The one-liner: nbytes of the tensors that stand directly in a parameter's state."""
import torch


def measured_state_bytes(optimizer):
    kept = [value for own in optimizer.state.values() for value in own.values()]
    return sum(value.nbytes for value in kept if torch.is_tensor(value))


# %% right: match
"""Structural pattern matching; storages are told apart by _cdata."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def look(thing):
        match thing:
            case torch.Tensor():
                storage = thing.untyped_storage()
                found[storage._cdata] = len(storage)
            case dict():
                look(list(thing.values()))
            case list() | tuple():
                for part in thing:
                    look(part)

    for own in optimizer.state.values():
        look(own)
    return sum(found.values())


# %% wrong: four_bytes_each
"""4 bytes for each value of a storage, whatever its type."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def look(thing):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = 4 * (storage.nbytes() // thing.element_size())
        elif isinstance(thing, dict):
            look(list(thing.values()))
        elif isinstance(thing, (list, tuple)):
            for part in thing:
                look(part)

    look(list(optimizer.state.values()))
    return sum(found.values())


# %% wrong: no_dicts_in_lists
"""Looks into lists for tensors and further lists, not for dicts."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def in_list(parts):
        for part in parts:
            if torch.is_tensor(part):
                storage = part.untyped_storage()
                found[storage.data_ptr()] = storage.nbytes()
            elif isinstance(part, (list, tuple)):
                in_list(part)

    def in_dict(own):
        for part in own.values():
            if isinstance(part, dict):
                in_dict(part)
            else:
                in_list([part])

    for own in optimizer.state.values():
        in_dict(own)
    return sum(found.values())


# %% wrong: three_levels
"""Looks three containers deep."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def look(thing, depth):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        elif depth and isinstance(thing, dict):
            for part in thing.values():
                look(part, depth - 1)
        elif depth and isinstance(thing, (list, tuple)):
            for part in thing:
                look(part, depth - 1)

    for own in optimizer.state.values():
        look(own, 3)
    return sum(found.values())


# %% right: by_params
"""Goes through param_groups and asks with `in` first."""
import torch


def measured_state_bytes(optimizer):
    seen, total = set(), 0

    def add(x):
        nonlocal total
        if isinstance(x, torch.Tensor):
            s = x.untyped_storage()
            if s.data_ptr() in seen:
                return
            seen.add(s.data_ptr())
            total += s.size()
        elif isinstance(x, dict):
            [add(y) for y in x.values()]
        elif isinstance(x, (list, tuple)):
            [add(y) for y in x]

    for group in optimizer.param_groups:
        for p in group["params"]:
            if p in optimizer.state:
                add(optimizer.state[p])
    return total


# %% wrong: by_the_views_address
"""Remembers the views' own addresses, not the storages'."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def visit(x):
        if torch.is_tensor(x):
            found[x.data_ptr()] = x.untyped_storage().nbytes()
        elif isinstance(x, dict):
            for y in x.values():
                visit(y)
        elif isinstance(x, (list, tuple)):
            for y in x:
                visit(y)

    visit(dict(optimizer.state))
    return sum(found.values())


# %% wrong: once_a_parameter
"""Remembers storages for one parameter at a time."""
import torch


def measured_state_bytes(optimizer):
    total = 0
    for own in optimizer.state.values():
        found = {}

        def visit(x):
            if torch.is_tensor(x):
                s = x.untyped_storage()
                found[s.data_ptr()] = s.nbytes()
            elif isinstance(x, dict):
                for y in x.values():
                    visit(y)
            elif isinstance(x, (list, tuple)):
                for y in x:
                    visit(y)

        visit(own)
        total += sum(found.values())
    return total


# %% wrong: remembers
"""The set of storages is a default argument, kept between calls."""
import torch


def measured_state_bytes(optimizer, seen=set()):
    total = 0
    todo = list(optimizer.state.values())
    while todo:
        x = todo.pop()
        if torch.is_tensor(x):
            s = x.untyped_storage()
            if s.data_ptr() not in seen:
                seen.add(s.data_ptr())
                total += s.nbytes()
        elif isinstance(x, dict):
            todo.extend(x.values())
        elif isinstance(x, (list, tuple)):
            todo.extend(x)
    return total


# %% wrong: changes_what_it_walks
"""Takes entries out of the state's own containers while it walks."""
import torch


def measured_state_bytes(optimizer):
    found = {}
    todo = list(optimizer.state.values())
    while todo:
        x = todo.pop()
        if torch.is_tensor(x):
            found[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        elif isinstance(x, dict):
            while x:
                todo.append(x.popitem()[1])
        elif isinstance(x, (list, tuple)):
            todo.extend(x)
    return sum(found.values())


# %% wrong: first_parameter
"""Looks at the first parameter's state."""
import torch


def measured_state_bytes(optimizer):
    found = {}
    todo = list(optimizer.state.values())[:1]
    while todo:
        x = todo.pop()
        if torch.is_tensor(x):
            found[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        elif isinstance(x, dict):
            todo.extend(x.values())
        elif isinstance(x, (list, tuple)):
            todo.extend(x)
    return sum(found.values())


# %% wrong: remembers_the_result
"""Keeps its result for each optimizer, by its id()."""
import torch

RESULTS = {}


def measured_state_bytes(optimizer):
    def storages(thing):
        if isinstance(thing, torch.Tensor):
            storage = thing.untyped_storage()
            return {storage.data_ptr(): storage.nbytes()}
        parts = thing.values() if isinstance(thing, dict) else thing
        if not isinstance(thing, (dict, list, tuple)):
            return {}
        return {key: size for part in parts for key, size in storages(part).items()}

    if id(optimizer) not in RESULTS:
        RESULTS[id(optimizer)] = sum(storages(list(optimizer.state.values())).values())
    return RESULTS[id(optimizer)]


# %% wrong: first_of_a_tuple
"""Looks at a tuple's first item only."""
import torch


def measured_state_bytes(optimizer):
    def storages(thing):
        if isinstance(thing, torch.Tensor):
            storage = thing.untyped_storage()
            return {storage.data_ptr(): storage.nbytes()}
        if isinstance(thing, dict):
            thing = list(thing.values())
        if isinstance(thing, tuple):
            thing = list(thing[:1])
        if not isinstance(thing, list):
            return {}
        return {key: size for part in thing for key, size in storages(part).items()}

    return sum(storages(list(optimizer.state.values())).values())


# %% wrong: no_dicts_in_dicts
"""Looks into dicts of lists, not into dicts of dicts."""
import torch


def measured_state_bytes(optimizer):
    found = {}

    def look(thing):
        if isinstance(thing, torch.Tensor):
            storage = thing.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        elif isinstance(thing, dict):
            for part in thing.values():
                if not isinstance(part, dict):
                    look(part)
        elif isinstance(thing, (list, tuple)):
            for part in thing:
                look(part)

    for state in optimizer.state.values():
        look(state)
    return sum(found.values())


# %% wrong: first_group
"""Looks at the states of the first group's parameters."""

import torch


def measured_state_bytes(optimizer):
    storages = {}

    def visit(thing):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
        elif isinstance(thing, (dict, list, tuple)):
            for part in thing.values() if isinstance(thing, dict) else thing:
                visit(part)

    for param in optimizer.param_groups[0]["params"]:
        if param in optimizer.state:
            visit(optimizer.state[param])
    return sum(storages.values())


# %% wrong: from_the_view_on
"""Counts a storage from where a view of it begins."""

import torch


def measured_state_bytes(optimizer):
    storages = {}

    def visit(thing):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            size = storage.nbytes() - thing.storage_offset() * thing.element_size()
            storages[storage.data_ptr()] = max(size, storages.get(storage.data_ptr(), 0))
        elif isinstance(thing, dict):
            for part in thing.values():
                visit(part)
        elif isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part)

    visit(dict(optimizer.state))
    return sum(storages.values())


# %% wrong: bases
"""Takes a view's _base for the whole; a view that was made through `data` has none."""
import torch


def measured_state_bytes(optimizer):
    sizes = {}

    def visit(thing):
        if torch.is_tensor(thing):
            whole = thing if thing._base is None else thing._base
            sizes[whole.data_ptr()] = whole.nbytes
        elif isinstance(thing, dict):
            visit(list(thing.values()))
        elif isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part)

    visit(list(optimizer.state.values()))
    return sum(sizes.values())

# %% wrong: scalars_left_out
"""Step counters don't count."""


def measured_state_bytes(optimizer):
    by = {}
    def walk(v):
        if torch.is_tensor(v) and v.dim():
            by[v.untyped_storage().data_ptr()] = v.untyped_storage().nbytes()
        elif isinstance(v, dict):
            [walk(x) for x in v.values()]
        elif isinstance(v, (list, tuple)):
            [walk(x) for x in v]
    for s in optimizer.state.values():
        walk(s)
    return sum(by.values())
