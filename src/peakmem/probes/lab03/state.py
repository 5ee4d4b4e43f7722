"""Probe of lab 3's measurement of an optimizer's state, and the states that it measures."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from peakmem.probes import Calls, Namespace, Outcomes, call_each

__all__ = ["is_view", "measured_state_bytes"]

# All optimizers so far. If one were freed, the next could get its addresses, and the results of a
# function that remembers addresses would vary from run to run.
_kept: list[torch.optim.Optimizer] = []


def measured_state_bytes(student: Namespace, calls: Calls) -> Outcomes:
    """Call `measured_state_bytes(optimizer)` on an optimizer for each of `calls`.

    A call describes one state in plain data: `parameters` has the sizes of the parameters, which
    are float32; `sizes` and `dtypes` describe storages. `trees` has a dict for each parameter, like
    an optimizer's, with views of the storages as leaves (`is_view`). If there are fewer trees than
    parameters, the last parameters have no state. The value is "changed" if the student's function
    changed the optimizer, "another result when called again" if a second call on the same state
    gives another result, and "the same result for an emptied state" if the function doesn't notice
    that the state was emptied.
    """

    def measure_one(state: Mapping[str, Any]) -> Any:
        optimizer = _StateOnly(state)
        _kept.append(optimizer)
        before = optimizer.described()
        found = student.measured_state_bytes(optimizer)
        if optimizer.described() != before:
            return "changed"
        if not _equal(found, student.measured_state_bytes(optimizer)):
            return "another result when called again"
        empty = _StateOnly({**state, "trees": []})
        _kept.append(empty)
        optimizer.state.clear()
        emptied = student.measured_state_bytes(optimizer)
        alike = _equal(emptied, student.measured_state_bytes(empty))
        return found if alike else "the same result for an emptied state"

    return call_each(measure_one, calls)


def _equal(found: Any, again: Any) -> bool:
    try:
        return bool(found == again)
    except Exception:  # values that can't be compared; the judge sees what was found
        return True


def is_view(thing: Any) -> bool:
    """Whether plain data describes a view: {"storage": i, "start": a, "stop": b}."""
    return isinstance(thing, dict) and thing.keys() == {"storage", "start", "stop"}


class _StateOnly(torch.optim.Optimizer):
    """An optimizer with a given state, which can't take steps."""

    # torch's wrappers of these import torch._dynamo at the first call, which takes seconds.
    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)

    def __init__(self, state: Mapping[str, Any]) -> None:
        parameters = [torch.zeros(n, requires_grad=True) for n in state["parameters"]]
        # One group per parameter, since the state belongs to all groups.
        super().__init__([{"params": [parameter]} for parameter in parameters], {})
        kinds = zip(state["sizes"], state["dtypes"], strict=True)
        storages = [torch.zeros(n, dtype=getattr(torch, dtype)) for n, dtype in kinds]
        for parameter, tree in zip(parameters, state["trees"], strict=False):
            self.state[parameter] = _built(tree, storages)

    def described(self) -> list[Any]:
        """Return all objects in the state, including the values of tensors."""
        return [(id(parameter), _described(own)) for parameter, own in self.state.items()]


def _built(tree: Any, storages: Sequence[torch.Tensor]) -> Any:
    if is_view(tree):
        # Through `data`, so that the view has no attribute that leads to the whole tensor.
        whole = storages[tree["storage"]]
        if whole.numel() == 1:  # a step counter, which torch keeps without dimensions
            return whole.reshape(()).data
        return whole[tree["start"] : tree["stop"]].data
    if isinstance(tree, dict):
        return {key: _built(part, storages) for key, part in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_built(part, storages) for part in tree)
    return tree


def _described(thing: Any) -> Any:
    if isinstance(thing, torch.Tensor):
        return id(thing), thing.untyped_storage().data_ptr(), thing.tolist()
    if isinstance(thing, dict):
        return id(thing), [(key, _described(part)) for key, part in thing.items()]
    if isinstance(thing, (list, tuple)):
        return id(thing), [_described(part) for part in thing]
    return thing
