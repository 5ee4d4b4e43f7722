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
