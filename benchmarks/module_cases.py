"""Training steps for every module in torch.nn, and for torch's own lists of modules and operators.

torch tests its modules and operators with lists of samples (`module_db`, `op_db`). These samples
are tiny, and some modules are missing, so every module also has a step of a few MB here.

Long because it is a table: one row for each module of torch.nn.
"""

from __future__ import annotations

import importlib
import sys
import types
import unittest
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.utils._pytree import tree_leaves, tree_map

from peakmem.measure.meter import BuildStep

__all__ = ["NO_STEP", "OWN", "Sample", "listed_modules", "own_samples", "torch_samples"]

SAMPLES = 6  # per module or operator, at most, spread over torch's list


@dataclass(frozen=True)
class Sample:
    """A training step, under the name of its module or operator."""

    kind: str
    name: str
    build: BuildStep


def listed_modules() -> list[str]:
    """Return the names of all modules that torch.nn has."""
    return sorted(
        name
        for name, thing in vars(nn).items()
        if isinstance(thing, type) and issubclass(thing, nn.Module)
    )


NO_STEP: Mapping[str, str] = {
    **dict.fromkeys(("Module", "RNNBase", "RNNCellBase"), "a base class"),
    **dict.fromkeys(("Container", "ModuleDict", "ModuleList"), "holds modules"),
    **dict.fromkeys(("ParameterDict", "ParameterList"), "holds parameters"),
    "DataParallel": "needs several GPUs",
    "SyncBatchNorm": "needs several processes",
    "Sequential": "holds modules",
}


def _f(*shape: int) -> torch.Tensor:
    return torch.rand(shape, requires_grad=True)


def _n(*shape: int, below: int = 2) -> torch.Tensor:
    return torch.randint(0, below, shape)


Make = Callable[[], Any]


def _made(name: str, *sizes: float, **options: Any) -> Make:
    return lambda: getattr(nn, name)(*sizes, **options)


def _same(shape: tuple[int, ...], *names: str, **options: Any) -> dict[str, tuple[Make, Make]]:
    """Modules that are constructed and called in the same way."""
    return {name: (_made(name, **options), lambda: [_f(*shape)]) for name in names}


def _by_dimension(name: str, *sizes: float, lazy: bool = False) -> dict[str, tuple[Make, Make]]:
    """The 1d, 2d and 3d modules of one kind."""
    found: dict[str, tuple[Make, Make]] = {}
    for d, edge in ((1, 4096), (2, 64), (3, 16)):
        kind = f"{name}{d}d"
        found[kind] = _made(kind, *sizes), _images(d, edge)
        if lazy:
            found[f"Lazy{kind}"] = _made(f"Lazy{kind}", *sizes[1:]), _images(d, edge)
    return found


def _images(dimensions: int, edge: int) -> Make:
    return lambda: [_f(4, 16, *[edge] * dimensions)]


def _pooled(dimensions: int) -> Make:
    """Maxima, and the index of each."""
    shape = (4, 16, *[16] * dimensions)
    return lambda: [_f(*shape), torch.arange(16**dimensions).repeat(64).view(shape)]


def _loss(name: str, target: Make, *more: Make, **options: Any) -> dict[str, tuple[Make, Make]]:
    return {
        name: (
            lambda: getattr(nn, name)(**options),
            lambda: [_f(512, 128), target(), *(make() for make in more)],
        )
    }


_POSITIONS = (16, 128, 64)  # batch, steps, features

# fmt: off
_POINTWISE = (
    "AlphaDropout", "CELU", "Dropout", "ELU", "Flatten", "GELU", "GLU", "Hardshrink",
    "Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid",
    "Softmax", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink",
)
# fmt: on

OWN: Mapping[str, tuple[Make, Make]] = {
    **_same((512, 512), *_POINTWISE),
    **_same((4, 16, 64, 64), "Dropout2d", "FeatureAlphaDropout", "Softmax2d"),
    **_same((16, 16, 512), "Dropout1d"),
    **_same((4, 16, 16, 16, 16), "Dropout3d"),
    **_same((4, 16, 64, 64), "ChannelShuffle", groups=4),
    **_same((4, 16, 64, 64), "PixelShuffle", upscale_factor=2),
    **_same((4, 16, 64, 64), "PixelUnshuffle", downscale_factor=2),
    **_same((4, 16, 64, 64), "Upsample", "UpsamplingBilinear2d", scale_factor=2),
    **_same((4, 16, 64, 64), "UpsamplingNearest2d", scale_factor=2),
    **_same((4, 16, 64, 64), "CrossMapLRN2d", "LocalResponseNorm", size=3),
    **_same((4, 16, 64, 64), "Unfold", kernel_size=3),
    **_same((4, 144, 3844), "Fold", output_size=64, kernel_size=3),
    **_same((512, 512), "Threshold", threshold=0.1, value=0.0),
    **_same((512, 512), "Unflatten", dim=1, unflattened_size=(16, 32)),
    **_same((4, 16, 64, 64), "GroupNorm", num_groups=4, num_channels=16),
    **_same(_POSITIONS, "LayerNorm", "RMSNorm", normalized_shape=64),
    **_same(_POSITIONS, "Linear", in_features=64, out_features=96),
    **_same(_POSITIONS, "LazyLinear", out_features=96),
    **_same((16, 64, 96), "LSTM", "GRU", "RNN", input_size=96, hidden_size=128, num_layers=2),
    **_same((512, 96), "LSTMCell", "GRUCell", "RNNCell", input_size=96, hidden_size=128),
    **_by_dimension("Conv", 16, 24, 3, lazy=True),
    **_by_dimension("ConvTranspose", 16, 24, 3, lazy=True),
    **_by_dimension("BatchNorm", 16, lazy=True),
    **_by_dimension("InstanceNorm", 16, lazy=True),
    **_by_dimension("AvgPool", 2),
    **_by_dimension("MaxPool", 2),
    **_by_dimension("LPPool", 2, 2),
    **_by_dimension("AdaptiveAvgPool", 8),
    **_by_dimension("AdaptiveMaxPool", 8),
    **_by_dimension("CircularPad", 2),
    **_by_dimension("ReflectionPad", 2),
    **_by_dimension("ReplicationPad", 2),
    **_by_dimension("ZeroPad", 2),
    **_by_dimension("ConstantPad", 2, 0.5),
    "FractionalMaxPool2d": (_made("FractionalMaxPool2d", 2, output_ratio=0.5), _images(2, 64)),
    "FractionalMaxPool3d": (_made("FractionalMaxPool3d", 2, output_ratio=0.5), _images(3, 16)),
    **{f"MaxUnpool{d}d": (_made(f"MaxUnpool{d}d", 2), _pooled(d)) for d in (1, 2, 3)},
    **_loss("BCELoss", lambda: torch.rand(512, 128)),
    **_loss("BCEWithLogitsLoss", lambda: torch.rand(512, 128)),
    **_loss("CosineEmbeddingLoss", lambda: _f(512, 128), lambda: _n(512) * 2 - 1),
    **_loss("CrossEntropyLoss", lambda: _n(512)),
    **_loss("GaussianNLLLoss", lambda: torch.rand(512, 128), lambda: torch.ones(512, 128)),
    **_loss("HingeEmbeddingLoss", lambda: _n(512, 128) * 2 - 1),
    **_loss("HuberLoss", lambda: torch.rand(512, 128)),
    **_loss("KLDivLoss", lambda: torch.rand(512, 128)),
    **_loss("L1Loss", lambda: torch.rand(512, 128)),
    **_loss("MSELoss", lambda: torch.rand(512, 128)),
    **_loss("MarginRankingLoss", lambda: _f(512, 128), lambda: torch.ones(512, 128)),
    **_loss("MultiLabelMarginLoss", lambda: _n(512, 128)),
    **_loss("MultiLabelSoftMarginLoss", lambda: _n(512, 128)),
    **_loss("MultiMarginLoss", lambda: _n(512)),
    **_loss("NLLLoss", lambda: _n(512)),
    **_loss("PoissonNLLLoss", lambda: torch.rand(512, 128)),
    **_loss("SmoothL1Loss", lambda: torch.rand(512, 128)),
    **_loss("SoftMarginLoss", lambda: torch.rand(512, 128)),
    **_loss("TripletMarginLoss", lambda: _f(512, 128), lambda: _f(512, 128)),
    **_loss("TripletMarginWithDistanceLoss", lambda: _f(512, 128), lambda: _f(512, 128)),
    **_loss("CosineSimilarity", lambda: _f(512, 128)),
    **_loss("PairwiseDistance", lambda: _f(512, 128)),
    "NLLLoss2d": (lambda: nn.NLLLoss(), lambda: [_f(4, 16, 64, 64), _n(4, 64, 64)]),
    "CTCLoss": (
        lambda: nn.CTCLoss(),
        lambda: [
            nn.functional.log_softmax(_f(64, 16, 32), -1),
            _n(16, 20, below=31) + 1,
            torch.full((16,), 64),
            torch.full((16,), 20),
        ],
    ),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(64, 1000, [100, 500]),
        lambda: [_f(512, 64), _n(512, below=1000)],
    ),
    "LinearCrossEntropyLoss": (
        lambda: nn.LinearCrossEntropyLoss(64, 1000),
        lambda: [_f(512, 64), _n(512, below=1000)],
    ),
    "Bilinear": (lambda: nn.Bilinear(48, 32, 64), lambda: [_f(512, 48), _f(512, 32)]),
    "Embedding": (lambda: nn.Embedding(1000, 64), lambda: [_n(16, 128, below=1000)]),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(1000, 64), lambda: [_n(512, 16, below=1000)]),
    "MultiheadAttention": (
        lambda: nn.MultiheadAttention(64, 4, dropout=0.1, batch_first=True),
        lambda: [_f(*_POSITIONS)] * 3,
    ),
    "Transformer": (
        lambda: nn.Transformer(64, 4, 2, 2, 128, batch_first=True),
        lambda: [_f(*_POSITIONS), _f(*_POSITIONS)],
    ),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(64, 4, 128, batch_first=True),
        lambda: [_f(*_POSITIONS)],
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(64, 4, 128, batch_first=True),
        lambda: [_f(*_POSITIONS)] * 2,
    ),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128), 2),
        lambda: [_f(*_POSITIONS)],
    ),
    "TransformerDecoder": (
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(64, 4, 128), 2),
        lambda: [_f(*_POSITIONS)] * 2,
    ),
}


def own_samples(names: list[str] | None = None) -> Iterator[Sample]:
    """Yield our steps in fp32 and under autocast, for all modules or for the named ones."""
    for name, (make, inputs) in OWN.items():
        if names is None or name in names:
            for half in (False, True):
                yield Sample("module", f"nn.{name}", _own_step(make, inputs, half))


def _own_step(make: Make, inputs: Make, half: bool) -> BuildStep:
    def build(device: torch.device) -> Callable[[], object]:
        module: Any = make()
        taken = inputs()
        lazy = isinstance(module, LazyModuleMixin)
        if lazy:
            module(*taken)
        parameters = list(module.parameters())
        sgd = torch.optim.SGD(parameters) if parameters else None
        leaves = [x for x in taken if x.requires_grad and x.is_leaf]

        def step() -> None:
            for x in (*parameters, *leaves):
                x.grad = None
            with torch.autocast("cpu", torch.bfloat16) if half else nullcontext():
                out = module(*[x.detach().requires_grad_() if x.grad_fn else x for x in taken])
            _backward(out)
            if sgd is not None:
                sgd.step()

        return step

    return build


def torch_samples() -> Iterator[Sample]:
    """Yield the samples in torch's own lists: for modules, then for operators with a derivative."""
    if "expecttest" not in sys.modules:  # torch's lists import it only for a base class
        stand_in: Any = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase
        sys.modules["expecttest"] = stand_in
    tests = "torch.testing._internal.common_"
    for info in importlib.import_module(tests + "modules").module_db:
        options = {"device": "cpu", "dtype": torch.float32, "requires_grad": True, "training": True}
        for given in _spread(info.module_inputs_func(info, **options)):
            yield Sample("module", info.name, _module_step(info.module_cls, given))
    for info in importlib.import_module(tests + "methods_invocations").op_db:
        kinds = [kind for kind in (torch.float32, torch.complex64) if kind in info.dtypes]
        if not info.supports_autograd or not kinds:
            continue
        name = ".".join(filter(None, (info.name, info.variant_test_name)))
        for given in _spread(info.sample_inputs("cpu", kinds[0], requires_grad=True)):
            yield Sample("operator", name, _operator_step(info.op, given))


def _spread(samples: Any) -> list[Any]:
    """Return at most SAMPLES of the samples, spread over the list."""
    found = list(samples)
    return found[:: -(-len(found) // SAMPLES)] if found else []


def _module_step(kind: type[nn.Module], given: Any) -> BuildStep:
    def build(device: torch.device) -> Callable[[], object]:
        made, taken = given.constructor_input, given.forward_input
        args, kwargs = tree_map(_copy, (list(made.args), made.kwargs))
        module = kind(*args, **kwargs).train()
        args, kwargs = tree_map(_copy, (list(taken.args), taken.kwargs))
        return _step(module, args, kwargs, list(module.parameters()))

    return build


def _operator_step(operator: Callable[..., Any], given: Any) -> BuildStep:
    def build(device: torch.device) -> Callable[[], object]:
        args, kwargs = tree_map(_copy, ([given.input, *given.args], given.kwargs))
        return _step(operator, args, kwargs, [])

    return build


def _step(
    call: Callable[..., Any], args: Any, kwargs: Any, parameters: list[torch.Tensor]
) -> Callable[[], object]:
    leaves = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    leaves = [*(x for x in leaves if x.requires_grad), *parameters]

    def step() -> None:
        for x in leaves:
            x.grad = None
        _backward(call(*args, **kwargs))

    return step


def _backward(out: Any) -> None:
    """Run backward from everything that has a gradient."""
    ends = [x for x in tree_leaves(out) if isinstance(x, torch.Tensor) and x.requires_grad]
    if ends:
        torch.autograd.backward(ends, [torch.ones_like(x) for x in ends])


def _copy(value: Any) -> Any:
    """Return a copy with a tensor's strides and storage size."""
    if not isinstance(value, torch.Tensor):
        return value
    with torch.no_grad():
        size = value.untyped_storage().nbytes() // value.element_size()
        storage = torch.empty(size, dtype=value.dtype)
        storage.copy_(value.detach().as_strided((size,), (1,), 0))
        copy = storage.as_strided(value.shape, value.stride(), value.storage_offset())
        copy = torch._neg_view(copy) if value.is_neg() else copy
        copy = (copy.conj() if value.is_conj() else copy).detach()
    return copy.requires_grad_(value.requires_grad)
