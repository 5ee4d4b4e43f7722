"""CUDA's defaults for a trace on the CPU: functions and optimizers take the paths of CUDA."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import (
    FakeTensor,
)
from torch.nn import functional as F

from peakmem.specs.ledger import Ledger, Tensor

__all__ = ["cuda_defaults", "without_counters"]


@contextmanager
def cuda_defaults() -> Iterator[None]:
    """Make functions and optimizers take the paths that they take on CUDA.

    The functions are patched, not overridden by a TorchFunctionMode: `Tensor.backward` runs without
    such a mode, so checkpointing's second forward would run other operators than its first.
    """
    optimizers = "torch.optim.optimizer"
    kinds = [torch.Tensor, torch.nn.Parameter, FakeTensor]
    with ExitStack() as stack:
        for place, name, function in [
            (F, "dropout", _dropout),
            (F, "scaled_dot_product_attention", _attention),
            *((place, name, _in_fp32(getattr(place, name))) for place, name in _IN_FP32),
        ]:
            stack.enter_context(mock.patch.object(place, name, function))
        stack.enter_context(mock.patch(f"{optimizers}._foreach_supported_types", kinds))
        stack.enter_context(
            mock.patch(f"{optimizers}._get_foreach_kernels_supported_devices", return_value=["cpu"])
        )
        yield


_IN_FP32: tuple[tuple[Any, str], ...] = (
    (F, "layer_norm"),
    (F, "group_norm"),
    (F, "softmax"),
    (F, "log_softmax"),
    (torch, "softmax"),
    (torch, "log_softmax"),
    (torch.Tensor, "softmax"),
    (torch.Tensor, "log_softmax"),
)
_real_dropout, _real_attention = F.dropout, F.scaled_dot_product_attention


def _in_fp32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as CUDA's autocast runs it: in fp32."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_autocast_enabled("cpu"):
            return function(*args, **kwargs)
        args, kwargs = tuple(map(_to_fp32, args)), {k: _to_fp32(v) for k, v in kwargs.items()}
        with torch.autocast("cpu", enabled=False):
            return function(*args, **kwargs)

    return run


def _to_fp32(value: Any) -> Any:
    half = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if half else value


def _dropout(
    input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    if not training or not 0 < p < 1 or inplace:
        return _real_dropout(input, p, training, inplace)
    return torch.native_dropout(input, p, training)[0]


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    *args: Any,
    **kwargs: Any,
) -> torch.Tensor:
    return _real_attention(query, key, value, attn_mask, 0.0, *args, **kwargs)


def without_counters(ledger: Ledger) -> Ledger:
    """Return the ledger without step counters: on CUDA, foreach keeps them on the host."""

    def counter(tensor: Tensor) -> bool:
        return tensor.owner == "optimizer_state" and tensor.shape == ()

    return Ledger(tuple(t for t in ledger.tensors if not counter(t)), ledger.events)
