"""Operators as they run: forward, backward and optimizer alike, told to whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from peakmem.measure.storages import storages_of, tensors_in

__all__ = ["Operators"]

# Takes an operator's name, its tensors, the ids of their storages, and what it returned; returns
# the error that is to end the run, if any.
Listener = Callable[[str, list[torch.Tensor], set[int], Any], Exception | None]


class Operators(TorchDispatchMode):
    """While it is entered, tells a listener of every operator on this thread and in backward.

    `device` is the type of the device whose storages are told apart.
    """

    def __init__(self, device: str, listener: Listener) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device = device
        self._listener = listener

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # True, the default, would wrap __torch_dispatch__ in what imports torch._dynamo at the
        # first operator: seconds, and tens of MiB in the middle of a measurement.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.namespace == "prim":  # a fake tensor was asked where it is
            return func(*args, **(kwargs or {}))
        arguments = tensors_in((args, kwargs))
        # Ids, not storages: holding on to a storage would keep it alive past `set_`.
        had = {id(storage) for x in arguments for storage in storages_of(x, self._device)}
        result = func(*args, **(kwargs or {}))
        error = self._listener(func.name(), arguments, had, result)
        del arguments
        if error is not None:
            del result  # the error's traceback would keep it alive
            raise error
        return result
