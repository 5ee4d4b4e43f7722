"""Stand-ins for values that a traced step reads, because fake tensors have none.

True for the result of `all`, and for a sum of booleans compared with their number (every number is
finite, no token is padding); False for any other boolean (nothing is NaN); 1 for any other number
(a loss, a norm, a step counter). A GradScaler gets 0 infinities, so it takes its step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from peakmem.measure.workspaces import complete

__all__ = ["StandIns"]


class StandIns(TorchDispatchMode):
    """Answers operators that read values, and shapes layer norm's statistics."""

    def __init__(self, on_cuda: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._on_cuda = on_cuda
        self._overflows = WeakIdKeyDictionary()  # tensors in which GradScaler counts infinities
        self._holds = WeakIdKeyDictionary()  # results of `all`
        self._counts: Any = WeakIdKeyDictionary()  # sum of booleans -> how many they are

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.name()
        if name in ("aten::_local_scalar_dense", "aten::item", "aten::is_nonzero"):
            return self._value(func, args[0])
        if name in ("aten::equal", "aten::allclose"):
            return False
        if name == "aten::_amp_foreach_non_finite_check_and_unscale_":
            self._overflows[args[1]] = None
        kwargs = kwargs or {}
        with _named(func):
            result = complete(func, args, kwargs, func(*args, **kwargs), self._on_cuda)
        self._note_truths(name, args, result)
        if name == "aten::native_layer_norm" and (self._on_cuda or _is_mixed(args)):
            output, mean, deviation = result
            return output, mean.float(), deviation.float()
        return result

    def _note_truths(self, name: str, args: Any, result: Any) -> None:
        """Note what holds if all truth values are True: `all`, and a sum that is their number."""
        operator = name.partition(".")[0]
        if operator == "aten::sum" and args[0].dtype == torch.bool and result.ndim == 0:
            self._counts[result] = args[0].numel()
        is_count = name == "aten::eq.Scalar" and self._counts.get(args[0]) == args[1]
        if operator == "aten::all" or is_count:
            self._holds[result] = None

    def _value(self, func: Any, tensor: torch.Tensor) -> Any:
        if tensor in self._overflows:
            return 0.0
        return True if tensor in self._holds else _stand_in(func, tensor)


def _is_mixed(args: Any) -> bool:
    """Tell whether a layer norm's weight has another format; statistics are in fp32 then."""
    return args[2] is not None and args[2].dtype != args[0].dtype


def _stand_in(func: Any, tensor: torch.Tensor) -> Any:
    """Return the value of a constant, as `torch.tensor(3)` is, and else one that will do."""
    if not isinstance(tensor, FakeTensor) or tensor.constant is not None:
        return func(tensor)
    if tensor.dtype == torch.bool or func.name() == "aten::is_nonzero":
        return False
    return 1.0 if tensor.dtype.is_floating_point else 1


@contextmanager
def _named(func: Any) -> Iterator[None]:
    """Say in a RuntimeError which operator failed: its kernel for fake tensors may be stricter."""
    try:
        yield
    except (
        DynamicOutputShapeException,
        DataDependentOutputException,
        UnsupportedOperatorException,
        NotImplementedError,
    ):
        raise
    except RuntimeError as error:
        raise RuntimeError(
            f"{func.name()} failed on fake tensors: {error} If the step runs on real ones, this "
            "operator cannot be traced; use meter.measure, which runs the step"
        ) from error
