"""Memory that fake tensors don't show: added like that of real kernels, or refused by name."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from peakmem.measure import workspaces
from peakmem.measure.meter import BuildStep, measure
from peakmem.measure.trace import Untraceable, trace
from peakmem.measure.workspaces import lstm_workspace_bytes

Call = Callable[..., Any]


def step_of(make: Call, *shapes: tuple[int, ...], half: bool = False) -> BuildStep:
    """A build_step that runs a module, or a function, forward and backward."""

    def build(device: torch.device) -> Callable[[], object]:
        call = make()
        inputs = [torch.ones(shape, device=device, requires_grad=True) for shape in shapes]

        def step() -> None:
            for x in (*inputs, *(call.parameters() if isinstance(call, nn.Module) else ())):
                x.grad = None
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                out = call(*inputs)
            (out[0] if isinstance(out, tuple) else out).sum().backward()

        return step

    return build


def assert_same(build_step: BuildStep) -> None:
    """A trace has the bytes of the real step, event by event."""
    with warnings.catch_warnings(action="ignore"):
        real, traced = measure(build_step, "cpu"), trace(build_step, "torch-cpu")
    assert [(e.name, n) for e, n in traced.timeline()] == [(e.name, n) for e, n in real.timeline()]


def need_lstm(dtype: torch.dtype) -> None:
    """Skip where this processor's oneDNN has no kernel for an LSTM of this dtype."""
    if not workspaces._real_lstm_workspace_bytes(1, 1, 1, 1, dtype):
        pytest.skip(f"this machine's oneDNN has no LSTM in {dtype}")


MODULES: dict[str, tuple[Call, tuple[tuple[int, ...], ...]]] = {
    "LSTM": (lambda: nn.LSTM(24, 40, 2, dropout=0.1), ((9, 5, 24),)),
    "LSTM, both ways": (lambda: nn.LSTM(24, 64, bidirectional=True), ((9, 5, 24),)),
    "LSTM, batch first": (lambda: nn.LSTM(256, 40, bias=False, batch_first=True), ((5, 9, 256),)),
    "LSTM with projection": (lambda: nn.LSTM(24, 40, proj_size=8), ((9, 5, 24),)),
    "GRU": (lambda: nn.GRU(24, 40, 2), ((9, 5, 24),)),
    "RNN": (lambda: nn.RNN(24, 40), ((9, 5, 24),)),
    "LSTMCell": (lambda: nn.LSTMCell(24, 40), ((9, 24),)),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(32, 4, dropout=0.1), ((9, 2, 32),) * 3),
    "TransformerEncoder": (  # of deep copies
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64), 2),
        ((9, 2, 32),),
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(32, 4, 64),
        ((9, 2, 32), (7, 2, 32)),
    ),
    "Conv2d": (lambda: nn.Conv2d(4, 8, 3), ((2, 4, 9, 9),)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 8, 3), ((2, 4, 9),)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), ((2, 4, 9, 9),)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), ((2, 4, 9, 9),)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), ((2, 4, 9, 9),)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d(3), ((2, 4, 9, 9),)),
    "Dropout": (lambda: nn.Dropout(0.1), ((64, 64),)),
    "Bilinear": (lambda: nn.Bilinear(8, 9, 7), ((5, 8), (5, 9))),
    "Fold": (lambda: nn.Fold(16, 3), ((2, 36, 196),)),
    "Unfold": (lambda: nn.Unfold(1, stride=3), ((2, 4, 16, 16),)),
    "LogSigmoid": (lambda: nn.LogSigmoid(), ((64, 64),)),
    "MSELoss": (lambda: nn.MSELoss(), ((64, 64), (64, 64))),
    "MSELoss, broadcast": (lambda: lambda x, y: F.mse_loss(x, y), ((1, 64), (64, 64))),
    "MSELoss, none": (lambda: nn.MSELoss(reduction="none"), ((64, 64), (64, 64))),
    "SmoothL1Loss": (lambda: nn.SmoothL1Loss(), ((64, 64), (64, 64))),
    "BCELoss": (lambda: lambda x: F.binary_cross_entropy(x, torch.ones(64, 64)), ((64, 64),)),
    "SoftMarginLoss": (lambda: lambda x: F.soft_margin_loss(x, torch.ones(64, 64)), ((64, 64),)),
}


@pytest.mark.parametrize("half", [False, True], ids=["fp32", "autocast"])
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore")
def test_a_traced_module_has_the_bytes_of_the_real_one(name: str, half: bool) -> None:
    make, shapes = MODULES[name]
    if half and name == "BCELoss":
        pytest.skip("torch refuses it under autocast")
    if half and isinstance(make(), nn.LSTM):
        need_lstm(torch.bfloat16)
    assert_same(step_of(make, *shapes, half=half))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("with_last", [False, True])
@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_traced_embedding_bag_has_the_bytes_of_the_real_one(
    mode: str, with_last: bool, padding: int | None, trains: bool, dtype: torch.dtype
) -> None:
    def build(device: torch.device) -> Callable[[], object]:
        bag = nn.EmbeddingBag(
            10, 6, mode=mode, include_last_offset=with_last, padding_idx=padding, dtype=dtype
        ).requires_grad_(trains)
        tokens, offsets = torch.zeros(700, dtype=torch.long), torch.tensor([0, 300, 700])

        def step() -> None:
            bag.zero_grad()
            out = bag(tokens, offsets)
            if trains:
                out.sum().backward()

        return step

    assert_same(build)


# The LSTM's workspace.


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_lstm_formula_is_what_onednn_asks_for(dtype: torch.dtype) -> None:
    need_lstm(dtype)
    dice = random.Random(1)
    widths = (1, 3, 16, 64, 100, 128, 256, 257, 300)
    for _ in range(40):
        sizes = (dice.randint(1, 12), dice.randint(1, 40), *dice.choices(widths, k=2))
        real = workspaces._real_lstm_workspace_bytes(*sizes, dtype)
        assert lstm_workspace_bytes(*sizes, dtype) == real, sizes


def test_an_lstm_is_refused_where_onednn_keeps_another_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build = step_of(lambda: nn.LSTM(8, 8), (3, 2, 8))
    trace(build, "torch-cpu")
    workspaces._lstm_formula_holds.cache_clear()
    monkeypatch.setattr(workspaces, "_PAGE_BYTES", 1 << 16)
    try:
        with pytest.raises(Untraceable, match=r"mkldnn_rnn_layer.*nn\.LSTM.*mkldnn\.flags"):
            trace(build, "torch-cpu")
    finally:
        workspaces._lstm_formula_holds.cache_clear()


@pytest.mark.filterwarnings("ignore")  # about TF32 on GPUs of Intel
def test_the_remedy_for_an_lstm_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspaces, "_lstm_formula_holds", lambda dtype: False)
    with torch.backends.mkldnn.flags(enabled=False):
        assert_same(step_of(lambda: nn.LSTM(8, 8), (3, 2, 8)))


def test_an_lstm_that_does_not_train_keeps_no_workspace() -> None:
    def build(device: torch.device) -> Callable[[], object]:
        lstm, x = nn.LSTM(8, 8), torch.ones(3, 2, 8)

        def step() -> None:
            with torch.no_grad():
                lstm(x)

        return step

    assert_same(build)


# CUDA's kernels.

ON_CUDA: dict[str, tuple[Call, tuple[int, ...]]] = {
    "torch.lstm on CUDA": (lambda: nn.LSTM(8, 8), (3, 2, 8)),
    "torch.gru on CUDA": (lambda: nn.GRU(8, 8), (3, 2, 8)),
    "torch.rnn_tanh on CUDA": (lambda: nn.RNN(8, 8), (3, 2, 8)),
    "torch.rnn_relu on CUDA": (lambda: nn.RNN(8, 8, nonlinearity="relu"), (3, 2, 8)),
    "torch.lstm_cell on CUDA": (lambda: nn.LSTMCell(8, 8), (3, 8)),
    "torch.gru_cell on CUDA": (lambda: nn.GRUCell(8, 8), (3, 8)),
    "torch.rms_norm on CUDA": (lambda: nn.RMSNorm(8), (3, 8)),
    "native_batch_norm on CUDA": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)).to(
            memory_format=torch.channels_last
        ),
        (2, 3, 9, 9),
    ),
}


@pytest.mark.parametrize("message", ON_CUDA)
def test_what_cudas_kernels_keep_unseen_is_refused(message: str) -> None:
    make, shape = ON_CUDA[message]
    trace(step_of(make, shape), "torch-cpu")
    with pytest.raises(Untraceable, match=f"{message}.*meter.measure"):
        trace(step_of(make, shape), "torch-cuda")
    trace(step_of(make, shape), "torch-cpu")  # put back


def test_cudas_log_sigmoid_keeps_no_buffer() -> None:
    build = step_of(lambda: nn.LogSigmoid(), (64, 64))
    cpu, cuda = (trace(build, profile).peak_bytes for profile in ("torch-cpu", "torch-cuda"))
    assert cpu - cuda == 64 * 64 * 4


def test_cudas_batch_norm_of_contiguous_tensors_traces() -> None:
    trace(step_of(lambda: nn.BatchNorm2d(4), (2, 4, 9, 9)), "torch-cuda")


# Tensors that did not come from an operator of the step.


def test_views_of_tensors_from_outside_are_no_new_memory() -> None:
    outside = torch.ones(1000, 10)

    def build(device: torch.device) -> Callable[[], object]:
        x = torch.ones(10, 10, device=device)
        return lambda: outside.view(10, 1000).t() @ x

    assert_same(build)


def test_deep_copies_are_those_of_real_tensors() -> None:
    def build(device: torch.device) -> Callable[[], object]:
        table = nn.Embedding(10, 64)
        head = nn.Linear(64, 10, bias=False)
        head.weight = table.weight
        model = copy.deepcopy(nn.Sequential(table, head))
        del table, head
        assert model[0].weight is model[1].weight
        tokens = torch.zeros(3, dtype=torch.long)
        model(tokens).sum().backward()
        model = copy.deepcopy(model)
        assert model[0].weight.grad is None
        whole = torch.zeros(64)
        halves = copy.deepcopy([whole[:32], whole[32:]])
        assert halves[0].untyped_storage() is halves[1].untyped_storage()

        def step() -> None:
            model(tokens).sum().backward()
            halves[0].add_(1)

        return step

    assert_same(build)


@pytest.mark.filterwarnings("ignore")
def test_a_mask_whose_values_decide_is_refused_unless_the_caller_says_what_it_is() -> None:
    def build_of(is_causal: bool | None, causal: bool) -> BuildStep:
        def build(device: torch.device) -> Callable[[], object]:
            layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0)
            encoder, x = nn.TransformerEncoder(layer, 1), torch.ones(5, 2, 8)
            mask = nn.Transformer.generate_square_subsequent_mask(5)
            mask = mask if causal else torch.zeros(5, 5)
            return lambda: encoder(x, mask, is_causal=is_causal).sum().backward()

        return build

    with pytest.raises(Untraceable, match=r"read the values.*is_causal"):
        trace(build_of(None, True), "torch-cpu")
    for causal in (False, True):
        measured = measure(build_of(None, causal), "cpu").peak_bytes
        assert trace(build_of(causal, causal), "torch-cpu").peak_bytes == measured


def test_max_unpool_keeps_the_memory_format() -> None:
    def build(device: torch.device) -> Callable[[], object]:
        x = torch.ones(2, 4, 8, 8).contiguous(memory_format=torch.channels_last)
        x.requires_grad_()
        at = torch.zeros(x.shape, dtype=torch.long).contiguous(memory_format=torch.channels_last)
        return lambda: F.max_unpool2d(x, at, 2).sum().backward()

    assert_same(build)


# Sentences instead of torch's messages.


@pytest.mark.parametrize("make", [lambda: nn.LazyLinear(4), lambda: nn.LazyBatchNorm1d()])
@pytest.mark.filterwarnings("ignore")
def test_lazy_modules_are_refused(make: Call) -> None:
    with pytest.raises(Untraceable, match=r"lazy module.*with their sizes"):
        trace(step_of(make, (3, 4)), "torch-cpu")


def test_an_operator_that_is_stricter_on_fake_tensors_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def build(device: torch.device) -> Callable[[], object]:
        x, weights = torch.ones(4, 8), torch.ones(2, 8, 8)
        ends = torch.tensor([2, 4], dtype=torch.int32)
        return lambda: F.grouped_mm(x, weights, offs=ends)

    measure(build, "cpu")  # as Mixtral's experts in fp32
    with pytest.raises(RuntimeError, match=r"aten::_grouped_mm failed.*BF16.*meter\.measure"):
        trace(build, "torch-cpu")
    assert not caplog.records


def test_values_that_decide_shapes_in_c_are_refused() -> None:
    def build(device: torch.device) -> Callable[[], object]:
        x, at = torch.ones(9), torch.tensor([2, 4])
        return lambda: torch.tensor_split(x, at + 1)

    with pytest.raises(Untraceable, match="takes a shape from values"):
        trace(build, "torch-cpu")
