"""A dispatch mode that reports every operator of forward, backward and optimizer to a listener."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from peakmem.measure.storages import storages_of, tensors_in

__all__ = ["Operators"]

# (operator's name, tensor arguments, ids of their storages, result) -> an error to raise, or None.
Listener = Callable[[str, list[torch.Tensor], set[int], Any], Exception | None]


class Operators(TorchDispatchMode):
    """While entered, reports every operator on this thread and in backward to a listener.

    `device` is the type of the device whose storages the listener gets.
    """

    def __init__(self, device: str, listener: Listener) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device = device
        self._listener = listener

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # True, the default, wraps __torch_dispatch__ in code that imports torch._dynamo at the
        # first operator, which takes seconds and tens of MiB in the middle of a measurement.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.namespace == "prim":  # a query of a fake tensor's device
            return func(*args, **(kwargs or {}))
        arguments = tensors_in((args, kwargs))
        # Ids, not storages: a reference would keep a storage alive past `set_`.
        had = {id(storage) for x in arguments for storage in storages_of(x, self._device)}
        result = func(*args, **(kwargs or {}))
        error = self._listener(func.name(), arguments, had, result)
        del arguments
        if error is not None:
            del result  # or else the error's traceback keeps it alive
            raise error
        return result
