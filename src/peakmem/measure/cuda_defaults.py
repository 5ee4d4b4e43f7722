"""CUDA's defaults for a trace on the CPU: functions and optimizers take CUDA's code paths."""

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
from torch.utils._python_dispatch import TorchDispatchMode

from peakmem.specs.ledger import Ledger, Tensor

__all__ = ["Scratch", "cuda_defaults", "without_counters"]


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
            (F, "cross_entropy", _cross_entropy),
            *((place, name, _in_fp32(getattr(place, name))) for place, name in _IN_FP32),
        ]:
            stack.enter_context(mock.patch.object(place, name, function))
        stack.enter_context(mock.patch(f"{optimizers}._foreach_supported_types", kinds))
        stack.enter_context(
            mock.patch(f"{optimizers}._get_foreach_kernels_supported_devices", return_value=["cpu"])
        )
        yield


# CUDA's autocast runs these in fp32: torch's list (docs.pytorch.org/docs/stable/amp.html), without
# reductions, which read 16 bits and write fp32.
_NAMES_IN_FP32 = (
    "acos asin binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss cosine_similarity "
    "dist erfinv exp expm1 group_norm hinge_embedding_loss huber_loss kl_div l1_loss layer_norm "
    "log log10 log1p log2 log_softmax logsumexp margin_ranking_loss mse_loss multi_margin_loss "
    "multilabel_margin_loss nll_loss pdist poisson_nll_loss pow reciprocal renorm rsqrt sinh "
    "smooth_l1_loss soft_margin_loss softmax softplus tan triplet_margin_loss __pow__ __rpow__"
)
_IN_FP32: tuple[tuple[Any, str], ...] = tuple(
    (place, name)
    for name in _NAMES_IN_FP32.split()
    for place in (F, torch, torch.Tensor)
    if hasattr(place, name)
)
_real_dropout, _real_attention = F.dropout, F.scaled_dot_product_attention
_real_cross_entropy, _real_log_softmax = F.cross_entropy, torch.log_softmax
_real_nll_loss = F.nll_loss


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
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Run fused attention, or operator by operator: no fused kernel groups heads in fp32."""
    run = _real_attention
    if enable_gqa and query.shape[-3] != key.shape[-3] and _dtype_of_products(query) == torch.float:
        run = _operators_of_attention
    else:
        dropout_p = 0.0  # fused too, with no mask of its own
    return run(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def _dtype_of_products(x: torch.Tensor) -> torch.dtype:
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype


def _operators_of_attention(*args: Any, **kwargs: Any) -> torch.Tensor:
    y: torch.Tensor = torch._scaled_dot_product_attention_math(*args, **kwargs)[0]
    return y


def _cross_entropy(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """Run the log softmax in the logits' format under autocast, and only the loss in fp32.

    `cross_entropy` is on autocast's list for the CPU but not for CUDA, where the operators that it
    calls are: it asks for a log softmax in the logits' dtype, and gets it.
    """
    options = (size_average, ignore_index, reduce, reduction)
    indices = not target.is_floating_point() and not label_smoothing
    if not torch.is_autocast_enabled("cpu") or input.dtype == torch.float32 or not indices:
        return _real_cross_entropy(input, target, weight, *options, label_smoothing)
    with torch.autocast("cpu", enabled=False):
        log_p = _real_log_softmax(input, min(1, input.ndim - 1))
        return _real_nll_loss(log_p.float(), target, _to_fp32(weight), *options)


class Scratch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Allocates what CUDA's kernels hold besides results; enter it after the meter, to count it.

    Softmax's backward first multiplies the gradient by the output, in a tensor of its own.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        scratch = args[0] * args[1] if func.name() == "aten::_softmax_backward_data" else None
        result = func(*args, **(kwargs or {}))
        del scratch
        return result


def without_counters(ledger: Ledger) -> Ledger:
    """Return the ledger without step counters: on CUDA, foreach keeps them on the host.

    A fused step keeps them on the device.
    """
    if any("_fused_" in event.name for event in ledger.events):
        return ledger

    def counter(tensor: Tensor) -> bool:
        return tensor.owner == "optimizer_state" and tensor.shape == ()

    return Ledger(tuple(t for t in ledger.tensors if not counter(t)), ledger.events)
