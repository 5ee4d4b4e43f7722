"""Memory that fake tensors don't show: operators' workspaces, and storages beyond their tensors.

`complete` gives an operator's fake result the storages that the real kernel would leave behind.
`refusing` makes functions raise `Untraceable` if their CUDA kernels keep workspaces of unknown
size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch._prims_common import suggest_memory_format
from torch.nn import functional as F
from torch.utils._python_dispatch import _disable_current_modes

from peakmem.core.errors import PeakmemError

__all__ = ["Untraceable", "complete", "lstm_workspace_bytes", "refusing"]

_PAGE_BYTES = 4096
_MEASURE = "use meter.measure, which runs the step"


class Untraceable(PeakmemError, NotImplementedError):
    """A trace can't know an operator's memory; the message names the operator and the remedy."""


def complete(func: Any, args: Any, kwargs: dict[str, Any], result: Any, on_cuda: bool) -> Any:
    """Return an operator's fake `result` with the storages of the real kernel.

    Raises Untraceable if the size of the real kernel's workspace is unknown.
    """
    correct = _CORRECTIONS.get(func.name())
    if correct is None:
        return result
    schema = func._schema.arguments  # defaults are left out of args
    given = {**{a.name: a.default_value for a in schema}, **kwargs}
    given.update(zip((a.name for a in schema), args, strict=False))
    return correct(func.name(), list(given.values()), result, on_cuda)


def _reduced_loss(name: str, args: Any, result: torch.Tensor, on_cuda: bool) -> torch.Tensor:
    """The kernel first writes every sample's loss, and shrinks that tensor but not its storage."""
    shape: torch.Size = torch.broadcast_shapes(args[0].shape, args[1].shape)  # type: ignore[no-untyped-call]
    _resize(result, max(shape.numel(), 1) * result.itemsize)
    return result


def _columns(name: str, args: Any, result: torch.Tensor, on_cuda: bool) -> torch.Tensor:
    """The kernel starts with a tensor as large as its input, and keeps that storage if it fits."""
    _resize(result, max(args[0].numel(), result.numel()) * result.itemsize)
    return result


def _lstm_layer(name: str, args: Any, result: Any, on_cuda: bool) -> Any:
    """Training saves oneDNN's workspace: gates, cells and states of every step, and gradients."""
    if on_cuda:  # a direct call, which bypasses the functions that `refusing` replaces
        raise Untraceable(f"{name} runs on the CPU only; trace it with 'torch-cpu'")
    workspace = result[3]
    if workspace is None or not torch.is_grad_enabled():
        return result
    (steps, batch, inputs), hidden, dtype = args[0].shape, args[10], args[0].dtype
    if not _lstm_formula_holds(dtype):
        raise Untraceable(
            f"{name} (nn.LSTM on the CPU) keeps a workspace for backward that fake tensors don't "
            "show, and this machine's oneDNN gives it another size than peakmem expects; "
            f"{_MEASURE}, or run the step within torch.backends.mkldnn.flags(enabled=False)"
        )
    return *result[:3], workspace.new_empty(
        lstm_workspace_bytes(steps, batch, inputs, hidden, dtype)
    )


def lstm_workspace_bytes(
    steps: int, batch: int, inputs: int, hidden: int, dtype: torch.dtype
) -> int:
    """Return the bytes of oneDNN's workspace for one LSTM layer in one direction.

    Source: `set_workspace_sizes` and `set_offsets` of oneDNN's src/cpu/rnn/rnn_utils, v3.12.

    >>> lstm_workspace_bytes(5, 9, 64, 3, torch.float32)
    102400
    """
    size, fp32 = dtype.itemsize, 4
    widest = max(inputs, hidden)
    states, outputs = 2 * (steps + 1) * batch, steps * batch
    parts = [
        outputs * _padded(4 * hidden, size) * size,  # gates
        outputs * _padded(hidden, size) * size,
        states * _padded(widest, size) * size,
        states * hidden * size,  # cells
        states * _padded(widest, fp32) * fp32,  # gradients of the layer's states,
        states * _padded(widest, fp32) * fp32,  # of the steps' states,
        states * hidden * fp32,  # and of the cells
    ]
    end = 0
    for part in parts:
        end = -(-end // _PAGE_BYTES) * _PAGE_BYTES + part
    return -(-end // _PAGE_BYTES) * _PAGE_BYTES


def _padded(width: int, size: int) -> int:
    """Return a row's length: whole cache lines, and one more if rows would share cache sets."""
    line = 64 // size
    padded = -(-width // line) * line
    return padded + line if padded % 256 == 0 else padded


@cache
def _lstm_formula_holds(dtype: torch.dtype) -> bool:
    """Whether the formula holds for this machine's oneDNN, in two tiny layers that really run."""
    with _disable_current_modes(), torch.enable_grad():
        return all(
            _real_lstm_workspace_bytes(*sizes, dtype) == lstm_workspace_bytes(*sizes, dtype)
            for sizes in ((3, 5, 7, 33), (2, 3, 256, 64))
        )


def _real_lstm_workspace_bytes(
    steps: int, batch: int, inputs: int, hidden: int, dtype: torch.dtype
) -> int:
    """Run a layer of zeros; return its workspace's bytes, or 0 if oneDNN has no kernel."""

    def zeros(*shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype)

    try:
        result = torch.ops.aten.mkldnn_rnn_layer(
            input=zeros(steps, batch, inputs),
            weight0=zeros(4 * hidden, inputs),
            weight1=zeros(4 * hidden, hidden),
            weight2=zeros(4 * hidden),
            weight3=zeros(4 * hidden),
            hx_=zeros(1, batch, hidden),
            cx_=zeros(1, batch, hidden),
            reverse=False,
            batch_sizes=[],
            mode=2,  # LSTM
            hidden_size=hidden,
            num_layers=1,
            has_biases=True,
            bidirectional=False,
            batch_first=False,
            train=True,
        )
    except RuntimeError:
        return 0
    return int(result[3].untyped_storage().nbytes())


def _embedding_bag(name: str, args: Any, result: Any, on_cuda: bool) -> Any:
    """The map from rows to bags has a spare element, and may exist only in backward."""
    weight, indices, offsets, _, mode, _, scales, with_last, padding = args
    output, bag_of, sizes, largest = result
    size, summed = bag_of.itemsize, mode == 0
    if on_cuda:
        _resize(bag_of, indices.numel() * size)
        _resize(sizes, offsets.numel() * size)
        _resize(largest, largest.numel() * size if mode == 2 else 0)
        return result
    fast = summed and padding < 0 and weight.stride(1) == 1 and weight.dtype != torch.float64
    if fast and (scales is None or scales.stride(0) == 1):
        bag_of = bag_of.new_empty(0)
    else:
        _resize(bag_of, (indices.numel() + 1) * size)
    _resize(sizes, offsets.numel() * size)
    if mode != 2:
        keeps_last = summed and name.startswith("aten::_embedding_bag_forward_only")
        bags = offsets.numel() - (with_last and not keeps_last)
        _resize(largest, bags * size)
    return output, bag_of, sizes, largest


def _max_unpool(name: str, args: Any, result: torch.Tensor, on_cuda: bool) -> torch.Tensor:
    """The kernel keeps the input's memory format, which saves a copy in backward."""
    layout = suggest_memory_format(args[0])
    return result.contiguous(memory_format=layout)


def _log_sigmoid(name: str, args: Any, result: Any, on_cuda: bool) -> Any:
    """CUDA's kernel keeps no buffer."""
    return (result[0], result[1].new_empty(0)) if on_cuda else result


def _batch_norm(name: str, args: Any, result: Any, on_cuda: bool) -> Any:
    """CuDNN keeps a reserve for backward; it is empty for contiguous tensors."""
    x = args[0]
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(x.dim())
    unlike = last is not None and not x.is_contiguous() and x.is_contiguous(memory_format=last)
    if on_cuda and unlike:
        raise Untraceable(
            f"{name} on CUDA keeps a reserve for backward whose size only cuDNN knows for "
            f"channels_last tensors; trace contiguous tensors, or {_MEASURE}, on the GPU"
        )
    return result


def _resize(tensor: torch.Tensor, n_bytes: int) -> None:
    tensor.untyped_storage().resize_(n_bytes)


_CORRECTIONS: dict[str, Callable[[str, Any, Any, bool], Any]] = {
    "aten::mse_loss": _reduced_loss,
    "aten::smooth_l1_loss": _reduced_loss,
    "aten::soft_margin_loss": _reduced_loss,
    "aten::binary_cross_entropy": _reduced_loss,
    "aten::col2im": _columns,
    "aten::im2col": _columns,
    "aten::mkldnn_rnn_layer": _lstm_layer,
    "aten::_embedding_bag": _embedding_bag,
    "aten::_embedding_bag_forward_only": _embedding_bag,
    "aten::max_unpool2d": _max_unpool,
    "aten::log_sigmoid_forward": _log_sigmoid,
    "aten::native_batch_norm": _batch_norm,
}

_RNN = "keeps a reserve for backward, whose size only cuDNN knows"
_CELL = "is one fused kernel with a workspace for backward, where the CPU runs plain operators"
_NORM = "is one fused kernel, which keeps less for backward than the CPU's plain operators"
_CUDA_KEEPS: tuple[tuple[Any, str, str], ...] = (
    *((torch._VF, name, _RNN) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")),
    *((torch._VF, name, _CELL) for name in ("lstm_cell", "gru_cell")),
    *((torch, name, _RNN) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")),
    *((torch, name, _CELL) for name in ("lstm_cell", "gru_cell")),
    *((place, "rms_norm", _NORM) for place in (F, torch)),
)


@contextmanager
def refusing() -> Iterator[None]:
    """Make functions raise Untraceable if their CUDA kernels keep other memory than the CPU's."""
    with ExitStack() as stack:
        for place, name, reason in _CUDA_KEEPS:
            stack.enter_context(mock.patch.object(place, name, _refusal(name, reason)))
        yield


def _refusal(name: str, reason: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise Untraceable(
            f"torch.{name} on CUDA {reason}; a trace runs the CPU's kernels and can't see that. "
            "Use meter.measure on the GPU, or trace with 'torch-cpu'"
        )

    return refuse
