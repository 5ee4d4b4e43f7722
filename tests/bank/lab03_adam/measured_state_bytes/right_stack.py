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
