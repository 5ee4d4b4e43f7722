"""Traces a training step: its ledger without its memory, from the meter on fake tensors.

Fake tensors have a shape, a dtype and a storage size, but no data. So a step's computation costs
nothing, and its allocations are known: GPT-3's 175 billion parameters fit on a laptop.

A step that reads a value gets a stand-in (see `stand_ins`). The memory is right for every step
whose tensors don't depend on the value. If a shape depends on values (`nonzero`, a mask as an
index), `trace` raises Untraceable.

Real kernels leave memory behind that fake tensors don't show: an LSTM's workspace, the storage of a
reduced loss. `peakmem.measure.workspaces` adds it, or raises Untraceable if its size is unknown.
Neither a trace nor the meter on the CPU counts scratch within an operator; docs/library.md says how
much it is.

Everything runs on CPU tensors. For "torch-cuda", a trace corrects these differences:
- a dropout mask takes one byte per element (`F.dropout`, `nn.Dropout`);
- `scaled_dot_product_attention` with dropout stays fused;
- layer norm saves its statistics in fp32;
- under autocast, the operators on CUDA's list run in fp32 (reductions read 16 bits there), and
  cross entropy's log softmax in the logits' format;
- softmax's backward has the gradient times the output in a tensor of its own;
- attention with grouped heads in fp32, which no fused kernel runs, saves its scores;
- optimizers default to foreach, whose step counters are on the host;
- tensors saved by embedding bag and log sigmoid have the sizes of CUDA's kernels.
It refuses modules whose CUDA kernels save other tensors for backward than the CPU's: `nn.LSTM`,
`nn.GRU`, `nn.RNN`, `nn.LSTMCell`, `nn.GRUCell`, `nn.RMSNorm`, and batch norm of channels_last
tensors. It leaves out workspaces (cuBLAS, cuDNN, inside other kernels), the seeds of fused
attention (16 bytes a call), the padding of some attention kernels, functions that a model imported
by name (`from torch.nn.functional import dropout`), cross entropy with probabilities or smoothed
labels under autocast, and the allocator's rounding.

The 76 steps that `course.py gpu` ran on an H200 and on an H100 matched the traced peak except
for those seeds (docs/measurements).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.nn.modules import transformer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from peakmem.core.errors import require_one_of
from peakmem.measure.cuda_defaults import Scratch, cuda_defaults, without_counters
from peakmem.measure.measure_chain import chain_of
from peakmem.measure.meter import BuildStep, MemoryMeter, run_measured
from peakmem.measure.stand_ins import StandIns
from peakmem.measure.storages import tensors_in
from peakmem.measure.workspaces import Untraceable, refusing
from peakmem.specs.ledger import Ledger

__all__ = ["Untraceable", "chain_of", "fake_tensors", "trace"]

_PROFILES = ("torch-cpu", "torch-cuda")


def trace(build_step: BuildStep, device_profile: str = "torch-cuda") -> Ledger:
    """Return the ledger of a training step that runs on fake tensors, which take no memory.

    `build_step(device)` is the function that `meter.measure` takes. It must make its tensors
    itself; real tensors from outside can only be inputs. Its device is the CPU under either
    profile, "torch-cpu" or "torch-cuda".

    Raises ValueError if the profile is unknown. Raises Untraceable, a NotImplementedError, if a
    trace can't know the step's memory; the message names the operator, what is unknown, and what to
    change.

    >>> def build_step(device):
    ...     layer = torch.nn.Linear(100_000, 100_000, bias=False, device=device)  # 40 GB
    ...     sgd = torch.optim.SGD(layer.parameters())
    ...     def step():
    ...         sgd.zero_grad()
    ...         layer(torch.ones(1, 100_000, device=device)).sum().backward()
    ...         sgd.step()
    ...     return step
    >>> ledger = trace(build_step)
    >>> ledger.by_owner(ledger.last_event("optimizer"))["gradient"]
    40000000000
    """
    with fake_tensors(device_profile) as meter:
        ledger = run_measured(meter, build_step(meter.device), warm_up=1)
    return without_counters(ledger) if device_profile == "torch-cuda" else ledger


@contextmanager
def fake_tensors(device_profile: str) -> Iterator[MemoryMeter]:
    """Meter a block in which all new tensors are fake. Raises the errors of `trace`."""
    require_one_of("device_profile", device_profile, _PROFILES)
    on_cuda = device_profile == "torch-cuda"
    meter = MemoryMeter(torch.device("cpu"))
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with (
        fake,
        StandIns(on_cuda),
        mock.patch("torch.utils.swap_tensors", _set_data),
        mock.patch("torch._subclasses.FakeTensor", _Unknown),
        mock.patch.object(FakeTensor, "__deepcopy__", _deep_copy),
        mock.patch.object(transformer, "_detect_is_causal_mask", _causal),
        mock.patch.object(logging.getLogger(FakeTensor.__module__), "disabled", True),
        cuda_defaults() if on_cuda else nullcontext(),
        refusing() if on_cuda else nullcontext(),
        _clear_errors(),
        meter,
        Scratch() if on_cuda else nullcontext(),  # type: ignore[no-untyped-call]
        _Outside(fake),
        meter.watch_layers(),
    ):
        yield meter


class _Outside(TorchDispatchMode):
    """Turns real tensors from outside the step into fake ones before the meter sees them.

    Otherwise a view of a real tensor would be a fake tensor with a storage unknown to the meter,
    which would count as new memory. Numbers, which torch wraps as 0-dimensional tensors, stay as
    they are, because they must not decide dtypes.
    """

    def __init__(self, fake: FakeTensorMode) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._fake = fake

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(map(_is_outside, tensors_in((args, kwargs)))):
            args, kwargs = tree_map(self._inside, (args, kwargs))
        return func(*args, **(kwargs or {}))

    def _inside(self, value: Any) -> Any:
        return self._fake.from_tensor(value) if _is_outside(value) else value


def _is_outside(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor) and value.ndim > 0


class _Unknown:
    """Replaces FakeTensor where libraries look for it, so that they can't detect the trace.

    Hugging Face's models check for it, and then build masks that real runs don't have.
    """


def _deep_copy(tensor: torch.Tensor, memo: dict[Any, Any]) -> torch.Tensor:
    """Copy a fake tensor so that views share storage; torch's own deep copy separates them.

    `nn.TransformerEncoder` makes its layers by deep copies.
    """
    if id(tensor) in memo:
        found: torch.Tensor = memo[id(tensor)]
        return found
    with torch.no_grad():
        if isinstance(tensor, torch.nn.Parameter):
            copy = torch.nn.Parameter(tensor.detach().clone(), tensor.requires_grad)
        else:
            storage = tensor.untyped_storage()
            if storage not in memo:  # tensors may share it
                flat = tensor.detach().as_strided((storage.nbytes() // tensor.itemsize,), (1,), 0)
                memo[storage] = flat.clone()
            place = tensor.shape, tensor.stride(), tensor.storage_offset()
            copy = memo[storage].view(tensor.dtype).as_strided(*place).detach()
            copy.requires_grad_(tensor.requires_grad)
            copy.grad = deepcopy(tensor.grad, memo)
    memo[id(tensor)] = copy
    return copy


def _causal(mask: torch.Tensor | None, is_causal: bool | None = None, size: Any = None) -> bool:
    """Replace the check whether a transformer's mask is causal, which reads values."""
    if is_causal is None and mask is not None:
        raise Untraceable(
            "nn.Transformer, nn.TransformerEncoder and nn.TransformerDecoder read the values of "
            "their masks, but a trace has no values; pass is_causal (to nn.Transformer: "
            "src_is_causal, tgt_is_causal), or use meter.measure, which runs the step"
        )
    return is_causal is True


def _set_data(parameter: torch.Tensor, converted: torch.Tensor) -> None:
    """Replace swap_tensors, with which `Module.to` refuses some fake parameters."""
    parameter.data = converted


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Turn limitations of fake tensors into Untraceable errors that say what to change."""
    try:
        yield
    except DynamicOutputShapeException as error:
        raise Untraceable(
            f"the shape of {error.func}'s result depends on values, but a trace has no values; "
            "keep shapes fixed (torch.where or masked_fill for a mask as an index), or use "
            "meter.measure, which runs the step"
        ) from error
    except DataDependentOutputException as error:
        raise Untraceable(
            f"{error.func} reads values, but a trace has no values; leave it out of the step, or "
            "use meter.measure, which runs the step"
        ) from error
    except UnsupportedOperatorException as error:
        raise Untraceable(
            f"{error.func} has no kernel for fake tensors; register one with torch's "
            "register_fake, or use meter.measure, which runs the step"
        ) from error
    except (RuntimeError, ValueError) as error:
        for sign, what in _SIGNS.items():
            if sign in str(error):
                raise Untraceable(f"{what}, or use meter.measure, which runs the step") from error
        raise


_LAZY = (
    "a trace can't create a lazy module's parameters later; build modules with their sizes "
    "(nn.Linear(8, 4), not nn.LazyLinear(4))"
)
# torch raises these limitations as plain RuntimeErrors or ValueErrors: text -> what to change.
_SIGNS = {
    "not supported for tensor subclasses": (
        "a trace has no values for numpy or Python; stay within torch"
    ),
    "data is not allocated yet": (
        "an operator takes a shape from values, but a trace has no values; give shapes as numbers"
    ),
    "UninitializedParameter": _LAZY,
    "UninitializedBuffer": _LAZY,
}
