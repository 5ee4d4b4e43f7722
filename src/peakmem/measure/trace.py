"""A training step's ledger without its memory: the meter, over a step on fake tensors.

Fake tensors have shape, dtype and storage size, and no data. So whatever a step computes costs
nothing here, and what it allocates is known: GPT-3's 175 billion parameters fit a laptop.

A step that reads a value gets a stand-in (see `stand_ins`). That is right for the memory of every
step whose tensors do not depend on the value. Where a shape depends on values (`nonzero`, a mask as
an index) `trace` says so instead.

What real kernels leave behind beyond what fake tensors show (an LSTM's workspace, the storage of a
reduced loss) is put in by `peakmem.measure.workspaces`, which refuses what it cannot know. Scratch
within one operator is counted neither here nor by the meter on the CPU: docs/library.md says how
much it is.

All runs as CPU tensors. For "torch-cuda" these differences of CUDA are put in:
- a dropout mask is kept as one byte an element (`F.dropout`, `nn.Dropout`);
- `scaled_dot_product_attention` with dropout stays fused;
- layer norm keeps its statistics in fp32;
- under autocast softmax, log softmax, layer norm and group norm run in fp32;
- the optimizers' default is foreach, whose step counters are the host's;
- what an embedding bag and log sigmoid keep has the sizes of CUDA's kernels.
Refused, as CUDA's kernels keep for backward what the CPU's do not: `nn.LSTM`, `nn.GRU`, `nn.RNN`,
`nn.LSTMCell`, `nn.GRUCell`, `nn.RMSNorm`, and batch norm of channels_last tensors.
Not put in: workspaces (cuBLAS, cuDNN, inside kernels), the padding that some attention kernels
want, the rest of autocast's lists, functions that a model imported by name (`from
torch.nn.functional import dropout`), and the allocator's rounding. These corrections follow torch's
source; they have not been compared with a GPU.
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

from peakmem.measure.cuda_defaults import cuda_defaults, without_counters
from peakmem.measure.measure_chain import chain_of
from peakmem.measure.meter import BuildStep, MemoryMeter, run_measured
from peakmem.measure.stand_ins import StandIns
from peakmem.measure.storages import tensors_in
from peakmem.measure.workspaces import Untraceable, refusing
from peakmem.specs.ledger import Ledger

__all__ = ["Untraceable", "chain_of", "fake_tensors", "trace"]

_PROFILES = ("torch-cpu", "torch-cuda")


def trace(build_step: BuildStep, device_profile: str = "torch-cuda") -> Ledger:
    """Return the ledger of a training step that is run on fake tensors; nothing is allocated.

    `build_step(device)` is what `meter.measure` takes. It must make its tensors itself: real ones
    from outside are taken as inputs only. The device it is given is the CPU under either profile,
    "torch-cpu" or "torch-cuda".

    Raises ValueError for an unknown profile, and Untraceable, a NotImplementedError, for a step
    whose memory a trace cannot know: it names the operator, what is unknown, and what to change.

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
    """Meter a block that makes fake tensors only. Raises what `trace` raises."""
    if device_profile not in _PROFILES:
        raise ValueError(
            f"device_profile={device_profile!r} is unknown; use one of {', '.join(_PROFILES)}"
        )
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
        _Outside(fake),
        meter.watch_layers(),
    ):
        yield meter


class _Outside(TorchDispatchMode):
    """Turns real tensors from outside the step into fake ones, before the meter looks.

    Otherwise a view of one would be a fake tensor with a storage that the meter has not seen, and
    so new memory. Numbers, which torch wraps as tensors of no dimension, stay as they are: they
    do not decide dtypes.
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
    """What no tensor is, under the name by which a library would find out that it is traced.

    Hugging Face's models ask, and then build masks that they go without in earnest.
    """


def _deep_copy(tensor: torch.Tensor, memo: dict[Any, Any]) -> torch.Tensor:
    """Stand in for a fake tensor's own deep copy, whose views have storages of their own.

    `nn.TransformerEncoder` makes its layers this way.
    """
    if id(tensor) in memo:
        found: torch.Tensor = memo[id(tensor)]
        return found
    with torch.no_grad():
        if isinstance(tensor, torch.nn.Parameter):
            copy = torch.nn.Parameter(tensor.detach().clone(), tensor.requires_grad)
        else:
            storage = tensor.untyped_storage()
            if storage not in memo:  # as tensors may share it
                flat = tensor.detach().as_strided((storage.nbytes() // tensor.itemsize,), (1,), 0)
                memo[storage] = flat.clone()
            place = tensor.shape, tensor.stride(), tensor.storage_offset()
            copy = memo[storage].view(tensor.dtype).as_strided(*place).detach()
            copy.requires_grad_(tensor.requires_grad)
            copy.grad = deepcopy(tensor.grad, memo)
    memo[id(tensor)] = copy
    return copy


def _causal(mask: torch.Tensor | None, is_causal: bool | None = None, size: Any = None) -> bool:
    """Stand in for what compares a transformer's mask with a causal one, and drops one that is."""
    if is_causal is None and mask is not None:
        raise Untraceable(
            "nn.Transformer, nn.TransformerEncoder and nn.TransformerDecoder read the values of "
            "their masks, which a trace has not; say with is_causal (of nn.Transformer: "
            "src_is_causal, tgt_is_causal) whether a mask is causal, or use meter.measure, which "
            "runs the step"
        )
    return is_causal is True


def _set_data(parameter: torch.Tensor, converted: torch.Tensor) -> None:
    """Stand in for swap_tensors, by which `Module.to` refuses fake parameters that it has seen."""
    parameter.data = converted


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Turn what fake tensors cannot do into what to change."""
    try:
        yield
    except DynamicOutputShapeException as error:
        raise Untraceable(
            f"the shape that {error.func} returns depends on values, which a trace has not; keep "
            "shapes fixed (torch.where or masked_fill for a mask as an index), or use "
            "meter.measure, which runs the step"
        ) from error
    except DataDependentOutputException as error:
        raise Untraceable(
            f"{error.func} reads values, which a trace has not; leave it out of the step, or use "
            "meter.measure, which runs the step"
        ) from error
    except UnsupportedOperatorException as error:
        raise Untraceable(
            f"{error.func} does not say what it returns for fake tensors; register that with "
            "torch's register_fake, or use meter.measure, which runs the step"
        ) from error
    except (RuntimeError, ValueError) as error:
        for sign, what in _SIGNS.items():
            if sign in str(error):
                raise Untraceable(f"{what}, or use meter.measure, which runs the step") from error
        raise


_SIGNS = {  # of errors that torch raises as plain RuntimeErrors or ValueErrors
    "not supported for tensor subclasses": (
        "a trace has no values for numpy or Python; stay within torch"
    ),
    "data is not allocated yet": (
        "an operator reads values that decide shapes, which a trace has not; give shapes as numbers"
    ),
    **dict.fromkeys(
        ("UninitializedParameter", "UninitializedBuffer"),
        "a trace cannot make the parameters of lazy modules later; build them with their sizes "
        "(nn.Linear(8, 4), not nn.LazyLinear(4))",
    ),
}
