"""Probes of lab 4, checkpointing."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peakmem.meter import MemoryMeter
from peakmem.nn import GPT
from peakmem.probes import Namespace, call_each, describe
from peakmem.probes.gpu import gpu_seconds, require_gpu

__all__ = [
    "GPU_BATCH",
    "GPU_LAYERS",
    "KEPT_SET_OPTIMUM",
    "MANY",
    "MANY_TANHS",
    "NESTED_OPTIMUM",
    "TANHS",
    "UNEQUAL_STAGES",
    "attention_block",
    "checkpoint",
    "gpu_stack",
    "gpu_tradeoff",
    "many_tanhs",
    "plan",
    "recompute_attention_only",
    "run_attention",
    "run_checkpointed",
    "run_in_segments",
    "run_large_layers",
    "run_layers",
    "run_many",
    "saved_bytes",
    "sqrt_rule",
]

Array = npt.NDArray[Any]
Calls = Sequence[Sequence[Any]]
Outcomes = list[tuple[Any, ...]]
Call = Callable[..., Any]

GPU_LAYERS = 16
GPU_BATCH, _GPU_LENGTH, _GPU_WIDTH, _GPU_HEADS = 8, 1024, 1024, 16

# The lab's chain of unequal stages, as a network that halves its images has them: for each stage
# (forward time in some unit, MiB saved, MiB of its output).
UNEQUAL_STAGES = (
    *((4, 128, 64), (9, 192, 64), (9, 192, 64)),
    *((6, 80, 16), (8, 96, 32), (8, 96, 32), (8, 96, 32)),
    *((6, 40, 8), (8, 48, 16), (8, 48, 16), (8, 48, 16)),
    *((6, 20, 4), (8, 24, 8), (8, 24, 8), (8, 24, 8), (2, 2, 1)),
)
# The least time by budget, as (MiB, time): from that budget on a plan of that time fits. One with
# a single level of segments, as in the exercise, and one in which segments have segments of their
# own. Only the times: which outputs to keep is for the student to find.
KEPT_SET_OPTIMUM = (
    *((320, 218), (324, 210), (328, 196), (336, 180), (358, 172), (390, 166), (486, 158)),
    *((566, 150), (592, 142), (710, 136), (902, 127), (1094, 118), (1158, 114)),
)
NESTED_OPTIMUM = (
    *((256, 206), (278, 201), (294, 198), (318, 193), (320, 189), (326, 188), (328, 187)),
    *((336, 179), (342, 178), (358, 172), (390, 166), (422, 164), (470, 162), (486, 158)),
    *((518, 156), (528, 154), (550, 152), (566, 150), (582, 146), (592, 142), (710, 136)),
    *((838, 132), (902, 127), (1030, 123), (1094, 118), (1158, 114)),
)


# saved_bytes


def saved_bytes(student: Namespace, calls: Calls) -> Outcomes:
    """Call `saved_bytes(fn, *inputs)` for functions named in `calls`: (name, rows, columns).

    The functions are those of this file's `_FUNCTIONS`, built anew for each call.
    """

    def measure(name: str, rows: int, columns: int) -> Any:
        torch.manual_seed(rows)
        return student.saved_bytes(*_FUNCTIONS[name](rows, columns))

    return call_each(measure, calls)


def _x(rows: int, columns: int) -> Tensor:
    return torch.randn(rows, columns, requires_grad=True)


def _gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.T).softmax(dim=-1) @ v


def _branch_dropped(x: Tensor) -> Tensor:
    unused = torch.exp(x).sum()
    del unused
    return torch.tanh(x)


def _dropped_then_saved(x: Tensor) -> Tensor:
    unused = x**2
    del unused
    return x**3


def _saved_then_dropped(x: Tensor) -> Tensor:
    cube = x**3
    unused = x**2
    del unused
    return cube


class _Scaled(nn.Module):
    scale: Tensor

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.register_buffer("scale", torch.full((columns,), 2.0))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


def _with_parameter(frozen: bool) -> Callable[[int, int], tuple[Any, ...]]:
    def make(rows: int, columns: int) -> tuple[Any, ...]:
        weight = nn.Parameter(torch.randn(2 * columns, columns), requires_grad=not frozen)
        return (lambda x: F.linear(x, weight)), _x(rows, columns)

    return make


def _times_parameter(rows: int, columns: int) -> tuple[Any, ...]:
    weight = nn.Parameter(torch.randn(columns))
    return (lambda x: x * weight), _x(rows, columns)


def _with_parameters_view(rows: int, columns: int) -> tuple[Any, ...]:
    weight = nn.Parameter(torch.randn(3, columns))
    return (lambda x: x * weight[1]), _x(rows, columns)


def _mlp(rows: int, columns: int) -> tuple[Any, ...]:
    layers = nn.Sequential(
        nn.Linear(columns, 4 * columns), nn.ReLU(), nn.Linear(4 * columns, columns)
    )
    return layers, torch.randn(rows, columns)


# name -> (rows, columns) -> the function and its inputs
_FUNCTIONS: dict[str, Callable[[int, int], tuple[Any, ...]]] = {
    "product": lambda r, c: ((lambda x: x * x), _x(r, c)),
    "gelu, composite": lambda r, c: (_gelu, _x(r, c)),
    "gelu, fused": lambda r, c: ((lambda x: F.gelu(x, approximate="tanh")), _x(r, c)),
    "linear": _with_parameter(frozen=False),
    "frozen linear": _with_parameter(frozen=True),
    "parameter": _times_parameter,
    "parameter's view": _with_parameters_view,
    "buffer": lambda r, c: (_Scaled(c), _x(r, c)),
    "view": lambda r, c: ((lambda x: x[:, :1] ** 2), _x(r, c)),
    "two slices": lambda r, c: ((lambda x: x[:, :2] ** 2 + x[:, 2:4] ** 2), _x(r, c)),
    "expanded": lambda r, c: ((lambda x, y: x * y.expand(r, c)), _x(r, c), _x(1, c)),
    "number": lambda r, c: ((lambda x: torch.exp(2.5 * x) / 3.0), _x(r, c)),
    "dropped": lambda r, c: (_branch_dropped, _x(r, c)),
    "dropped, then saved": lambda r, c: (_dropped_then_saved, _x(r, c)),
    "saved, then dropped": lambda r, c: (_saved_then_dropped, _x(r, c)),
    "mlp": _mlp,
    "layer_norm": lambda r, c: ((lambda x: F.layer_norm(x, (c,))), _x(r, c)),
    "attention": lambda r, c: (_attention, _x(r, c), _x(r, c), _x(r, c)),
    "embedding": lambda r, c: (nn.Embedding(50, c), torch.arange(r) % 50),
    "mask": lambda r, c: ((lambda x: x.masked_fill(x < 0, 0.0)), _x(r, c)),
    "double": lambda r, c: (torch.sin, _x(r, c).detach().double().requires_grad_()),
    "two outputs": lambda r, c: ((lambda x: (torch.tanh(x), torch.exp(x))), _x(r, c)),
    "no graph": lambda r, c: (torch.exp, torch.randn(r, c)),
}


# checkpoint


def checkpoint(student: Namespace, metered: bool = True, **case: Any) -> dict[str, Any]:
    """Run a function through the student's `checkpoint`.

    See `run_checkpointed`, `_kept` for the kind "memory" and `run_many` for the kind "many".
    """
    if case["kind"] == "memory":
        # The first run imports modules. Its numbers are others, so nothing of it can answer for
        # the second.
        _kept(student.checkpoint, **{**case, "seed": case["seed"] ^ 1})
        return _kept(student.checkpoint, **case)
    if case["kind"] == "many":
        run_many(student.checkpoint, **{**case, "rows": 2, "columns": 2}, metered=False)
        return run_many(student.checkpoint, **case, metered=metered)
    return run_checkpointed(student.checkpoint, **case)


def run_checkpointed(
    checkpoint: Call, kind: str, seed: int, rows: int, columns: int
) -> dict[str, Any]:
    """Run forward and backward of a small function through `checkpoint(fn, *args)`.

    Returns plain data: `outputs`, `gradients` (None where there is none), `calls` of the function
    after forward and after backward, and the random numbers `between` forward and backward and
    `after` both, drawn from the CPU's generator. `failed` is the error that ended backward,
    and empty if there was none.
    """
    torch.manual_seed(seed)
    x, y = (torch.randn(rows, columns, dtype=torch.float64, requires_grad=True) for _ in range(2))
    linear = nn.Linear(columns, columns, dtype=torch.float64)
    count, read_calls = _counted()
    run = _KINDS[kind]
    with torch.set_grad_enabled(kind != "no_grad"):
        out = run(lambda fn, *args: checkpoint(count(fn), *args), linear, x, y)
    calls_forward = read_calls()
    outputs: list[Any] = list(out) if isinstance(out, tuple) else [out]
    between = torch.rand(4)
    failed = _backward([o for o in outputs if o.requires_grad], only_last=kind == "last of several")
    leaves = [x, y, *linear.parameters()]
    return {
        "outputs": [o.detach().numpy().copy() for o in outputs],
        "is_tuple": isinstance(out, tuple),
        "requires_grad": outputs[0].requires_grad,
        "gradients": [None if t.grad is None else t.grad.numpy().copy() for t in leaves],
        "calls": [calls_forward, read_calls()],
        "between": between.numpy().copy(),
        "after": torch.rand(4).numpy().copy(),
        "failed": failed,
    }


def _counted() -> tuple[Callable[[Call], Call], Callable[[], int]]:
    """Return what wraps a function to count its calls, and what reads the count of them all."""
    calls = 0

    def count(fn: Call) -> Call:
        def counted(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            return fn(*args)

        return counted

    return count, lambda: calls


def _backward(outputs: list[Tensor], *, only_last: bool) -> str:
    """Run backward from a weighted sum of the outputs; return the error that ended it, if any."""
    total: Any = 0.0
    for output in outputs[-1:] if only_last else outputs:
        weights = torch.linspace(1, 2, output.numel(), dtype=torch.float64)
        total = total + (output * weights.view_as(output)).sum()
    try:
        if outputs:
            total.backward()
    except NotImplementedError:
        raise
    except Exception as error:
        kind, said, lines = describe(error)
        return f"{kind}: {said[:300]}\n{lines}".rstrip()
    return ""


# What each kind runs through the student's checkpoint `c`, of a linear layer, x and y.


def _arguments(c: Call, linear: nn.Module, x: Tensor, y: Tensor) -> Any:
    def fn(x: Tensor, power: int, y: Tensor, shift: Any, picked: Tensor, fixed: Tensor) -> Any:
        z = linear(torch.tanh(x)) ** power * torch.sin(y) * fixed
        return z[picked] if shift is None else -z

    picked = torch.arange(len(x)).flip(0)  # integers, which have no gradient
    return c(fn, x, 3, y, None, picked, torch.full((x.shape[1],), 0.5, dtype=torch.float64))


def _used_again(c: Call, linear: nn.Module, x: Tensor, y: Tensor) -> Any:
    """Two checkpoints, one behind the other; an inner result is used twice within, and outside."""
    h = torch.tanh(c(lambda x: torch.sin(linear(x)), x))
    return h * c(lambda a, b: torch.exp(linear(a)) * b, h, h) + y


def _random(c: Call, linear: nn.Module, x: Tensor, y: Tensor) -> Any:
    return c(lambda x: F.dropout(torch.tanh(linear(x)), 0.5) * torch.rand_like(x), x)


def _several(c: Call, linear: nn.Module, x: Tensor, y: Tensor) -> Any:
    def fn(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        z = linear(x)
        fixed = x.detach().round()  # floats without a gradient
        return torch.exp(z) * torch.tanh(y), x.argmax(dim=1), fixed, torch.sin(z) * y

    return c(fn, x, y)


_KINDS: dict[str, Callable[[Call, nn.Module, Tensor, Tensor], Any]] = {
    "layers": lambda c, linear, x, y: c(lambda x: torch.tanh(linear(torch.exp(linear(x)))), x),
    "arguments": _arguments,
    "used again": _used_again,
    "random": _random,
    "several": _several,
    "last of several": _several,
    "no_grad": lambda c, linear, x, y: c(lambda x: torch.tanh(linear(x)), x),
}


TANHS = 40


def _kept(checkpoint: Call, kind: str, seed: int, rows: int, columns: int) -> dict[str, Any]:
    """Forward and backward of many tanh under the meter: what forward left, and who was called.

    `kept_bytes` are storages that live after forward and did not before, the output's left out.
    `operators` are how many tanh the meter saw in forward, and in backward. `sums` are those of the
    output's rows and columns, and of the gradient's.
    """
    torch.manual_seed(seed)
    x = torch.randn(rows, columns, requires_grad=True)
    count, read_calls = _counted()
    fn = count(many_tanhs)

    with MemoryMeter("cpu", count_numpy=True).track(x) as forward:
        out = checkpoint(fn, x)
        gc.collect(1)  # young cycles only: a full one takes longer than all the rest
    calls_forward = read_calls()
    with MemoryMeter("cpu").track(x) as backward:
        out.sum().backward()
    return {
        "kept_bytes": forward.live_bytes - forward.baseline_bytes - out.untyped_storage().nbytes(),
        "numpy_bytes": forward.numpy_peak_bytes,
        "rise_bytes": forward.peak_bytes - forward.baseline_bytes,
        "calls": [calls_forward, read_calls()],
        "operators": [_count_of("tanh", forward), _count_of("tanh", backward)],
        "sums": [] if x.grad is None else [*_sums(out.detach()), *_sums(x.grad)],
    }


def many_tanhs(x: Tensor) -> Tensor:
    """Return what is measured: of each operator, one result would be saved."""
    for _ in range(TANHS):
        x = torch.tanh(1.5 * x)
    return x


MANY, MANY_TANHS = 10, 8  # checkpoints of one input, and the tanh in each


def run_many(
    checkpoint: Call, kind: str, seed: int, rows: int, columns: int, *, metered: bool
) -> dict[str, Any]:
    """Run forward and backward of the sum of `MANY` functions of x, each by `checkpoint(fn, x)`.

    Returns `sums`, those of the rows and columns of the gradient; the `loss`; `calls` of the
    functions after forward and after backward; and if `metered`, `rise_bytes`, by how much live
    bytes rose in both.
    """
    torch.manual_seed(seed)
    x = torch.randn(rows, columns, requires_grad=True)
    count, read_calls = _counted()
    found: dict[str, Any] = {}

    def forward_and_backward() -> None:
        loss = torch.zeros(())
        for number in range(MANY):
            loss = loss + checkpoint(count(partial(_tanhs, 1.0 + number / 8)), x).sum()
        found["calls"] = [read_calls()]
        found["loss"] = loss.item()
        loss.backward()  # type: ignore[no-untyped-call]

    if metered:
        with MemoryMeter("cpu", history=False).track(x) as meter:
            forward_and_backward()
        found["rise_bytes"] = meter.peak_bytes - meter.baseline_bytes
    else:
        forward_and_backward()
    found["calls"].append(read_calls())
    found["sums"] = [] if x.grad is None else _sums(x.grad)
    return found


def _tanhs(factor: float, x: Tensor) -> Tensor:
    for _ in range(MANY_TANHS):
        x = torch.tanh(factor * x)
    return x


def _count_of(operator: str, meter: MemoryMeter) -> int:
    return sum(name == f"aten::{operator}" for name, _ in meter.timeline)


def _sums(matrix: Tensor) -> list[Array]:
    """The sums of its rows and of its columns: small, and every element counts."""
    return [matrix.double().sum(dim).numpy() for dim in (1, 0)]


# run_in_segments


def _noting_layers(n: int, columns: int) -> tuple[list[nn.Module], Callable[[], list[int]]]:
    """Return layers, and what reads their numbers in the order that they were called.

    A layer is tanh(x * scale): what it keeps for backward is its input and its output. The numbers
    are no attribute of a layer.
    """
    calls: list[int] = []
    numbers: dict[int, int] = {}

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.rand(columns) + 0.5)

        def forward(self, x: Tensor) -> Tensor:
            calls.append(numbers.get(id(self), -1))
            return torch.tanh(x * self.scale)

    layers = [Layer() for _ in range(n)]
    numbers.update({id(layer): number for number, layer in enumerate(layers)})
    return list(layers), calls.copy


def run_in_segments(
    student: Namespace,
    container: str = "list",
    large: Mapping[str, int] | None = None,
    metered: bool = True,
    **case: int,
) -> dict[str, Any]:
    """Run layers through the student's `run_in_segments`; see `run_layers`, `run_large_layers`."""
    if large is None:
        return run_layers(student.run_in_segments, container, **case)
    run_large_layers(student.run_in_segments, **{**large, "rows": 2, "columns": 2}, metered=False)
    return run_large_layers(student.run_in_segments, **large, metered=metered)


def run_large_layers(
    run: Call,
    n_layers: int,
    segment_length: int,
    seed: int,
    rows: int,
    columns: int,
    *,
    metered: bool,
) -> dict[str, Any]:
    """Run `run(layers, x, segment_length)` and backward on a list of layers.

    Returns the numbers of the layers in the order they were called, in `forward` and in `backward`;
    `sums`, those of the output's rows and columns and of the gradient's; and if `metered`,
    `rise_bytes`, by how much live bytes rose in both.
    """
    torch.manual_seed(seed)
    layers, read_calls = _noting_layers(n_layers, columns)
    x = torch.randn(rows, columns, requires_grad=True)
    found: dict[str, Any] = {}

    def forward_and_backward() -> None:
        out = run(layers, x, segment_length)
        found["forward"] = read_calls()
        found["sums"] = _sums(out.detach())
        out.sum().backward()

    if metered:
        with MemoryMeter("cpu", history=False).track(x, nn.ModuleList(layers)) as meter:
            forward_and_backward()
        found["rise_bytes"] = meter.peak_bytes - meter.baseline_bytes
    else:
        forward_and_backward()
    found["backward"] = read_calls()[len(found["forward"]) :]
    found["sums"] += [] if x.grad is None else _sums(x.grad)
    return found


def run_layers(
    run: Call,
    container: str,
    n_layers: int,
    segment_length: int,
    seed: int,
    rows: int,
    columns: int,
) -> dict[str, Any]:
    """Run `run(layers, x, segment_length)` and backward under the meter.

    `container` is "list", "ModuleList" or "Sequential". Returns the `output`, the `gradients` of x
    and of every layer, the numbers of the layers in the order they were called, in `forward` and in
    `backward`, how many tanh the meter saw in each (`operators`), and `kept_bytes`: storages that
    live after forward and did not before, the output's included.
    """
    torch.manual_seed(seed)
    own, read_calls = _noting_layers(n_layers, columns)
    layers: Any = list(own)
    if container == "ModuleList":
        layers = nn.ModuleList(own)
    elif container == "Sequential":
        layers = nn.Sequential(*own)
    x = torch.randn(rows, columns, requires_grad=True)
    tracked = nn.ModuleList(own)
    with MemoryMeter("cpu").track(x, tracked) as meter:
        out = run(layers, x, segment_length)
        gc.collect(1)  # what only a cycle holds is not kept
    forward = read_calls()
    with MemoryMeter("cpu").track(x, tracked) as after:
        out.sum().backward()
    leaves = [x, *tracked.parameters()]
    return {
        "output": out.detach().numpy().copy(),
        "gradients": [None if t.grad is None else t.grad.numpy().copy() for t in leaves],
        "forward": forward,
        "backward": read_calls()[len(forward) :],
        "operators": [_count_of("tanh", meter), _count_of("tanh", after)],
        "kept_bytes": meter.live_bytes - meter.baseline_bytes,
    }


# sqrt_rule and plan


def sqrt_rule(student: Namespace, calls: Calls) -> Outcomes:
    """Call the function that each of `calls` names, on the rest of it."""
    return call_each(lambda name, *arguments: getattr(student, name)(*arguments), calls)


def plan(student: Namespace, calls: Calls) -> Outcomes:
    """Call `plan(stages, budget_bytes)`; a call is (forward_times, saved, outputs, budget).

    An error that is a ValueError of any kind comes back as ValueError; changed stages as an error.
    """

    def planned(times: list[Any], saved: list[int], outputs: list[int], budget: int) -> Any:
        stages = [
            SimpleNamespace(forward_time=t, saved_bytes=s, output_bytes=o)
            for t, s, o in zip(times, saved, outputs, strict=True)
        ]
        before = [vars(stage).copy() for stage in stages]
        given = list(stages)
        try:
            kept = student.plan(given, budget)
        except ValueError as error:
            raise ValueError(str(error)) from error
        if given != stages or [vars(stage) for stage in stages] != before:
            raise RuntimeError("your plan changed the stages it was given")
        return kept

    return call_each(planned, calls)


# recompute_attention_only


def attention_block(d_model: int, n_heads: int, length: int) -> nn.Module:
    """Return one transformer block with standard attention and no dropout, in training mode.

    It has norm1, attention, norm2 and mlp, and computes x + attention(norm1(x)), and of that
    a + mlp(norm2(a)).
    """
    shape = SimpleNamespace(n_layers=1, d_model=d_model, n_heads=n_heads, vocab=2, context=length)
    return GPT(shape, attention="standard").blocks[0]


def recompute_attention_only(student: Namespace, **case: Any) -> dict[str, Any]:
    """Run a block through the student's `recompute_attention_only`; see `run_attention`."""
    return run_attention(student.recompute_attention_only, **case)


def run_attention(
    run: Call, seed: int, batch: int, length: int, d_model: int, n_heads: int
) -> dict[str, Any]:
    """Run `run(block, x)` and backward under the meter.

    Returns the `output`, `gradients`, `kept_bytes` (live after forward and not before, the output
    left out) and how often operators ran in all: `softmax`, `gelu`, `addmm`, a linear layer's, and
    `fused`, torch's attention in one operator.
    """
    torch.manual_seed(seed)
    block = attention_block(d_model, n_heads, length)
    x = torch.randn(batch, length, d_model, requires_grad=True)
    with MemoryMeter("cpu").track(x, block) as meter:
        out = run(block, x)
        kept_bytes = meter.live_bytes - meter.baseline_bytes - out.untyped_storage().nbytes()
        out.square().sum().backward()
    leaves = [x, *block.parameters()]
    return {
        "output": out.detach().numpy().copy(),
        "gradients": [None if t.grad is None else t.grad.numpy().copy() for t in leaves],
        "kept_bytes": kept_bytes,
        "softmax": _count_of("_softmax", meter),
        "gelu": _count_of("gelu", meter),
        "addmm": _count_of("addmm", meter),
        "fused": sum("scaled_dot_product" in name for name, _ in meter.timeline),
    }


# gpu_tradeoff


def gpu_stack() -> tuple[nn.ModuleList, Tensor]:
    """Return GPU_LAYERS transformer blocks on the GPU, and an input for them.

    Width 1024, 16 heads, 8 sequences of 1024 tokens, float32, torch's fused attention. Raises
    RuntimeError where torch finds no CUDA GPU.
    """
    require_gpu("gpu_stack builds a model on")
    shape = SimpleNamespace(
        n_layers=GPU_LAYERS, d_model=_GPU_WIDTH, n_heads=_GPU_HEADS, vocab=2, context=_GPU_LENGTH
    )
    torch.manual_seed(0)
    blocks = GPT(shape).blocks.to("cuda")
    x = torch.randn(GPU_BATCH, _GPU_LENGTH, _GPU_WIDTH, device="cuda", requires_grad=True)
    return blocks, x


def gpu_tradeoff(student: Namespace, segment_lengths: Sequence[int]) -> dict[str, Any]:
    """Measure steps of the stack on this GPU, then let the student measure them.

    Returns `own` and `student`: for each segment length (seconds, peak bytes).
    """
    own = [_gpu_step(k) for k in segment_lengths]
    measured = [student.measure(k) for k in segment_lengths]
    return {"own": own, "student": [tuple(pair) for pair in measured]}


def _gpu_step(segment_length: int) -> tuple[float, int]:
    """Median seconds and peak requested bytes of forward and backward, by the GPU's own figures."""
    from torch.utils.checkpoint import checkpoint as torch_checkpoint

    blocks, x = gpu_stack()

    def segment(first: int, last: int, y: Tensor) -> Tensor:
        for block in blocks[first:last]:
            y = block(y)
        return y

    def step() -> None:
        y = x
        last_start = (math.ceil(GPU_LAYERS / segment_length) - 1) * segment_length
        for first in range(0, last_start, segment_length):
            y = torch_checkpoint(segment, first, first + segment_length, y, use_reentrant=False)
        segment(last_start, GPU_LAYERS, y).sum().backward()  # type: ignore[no-untyped-call]
        blocks.zero_grad()
        x.grad = None

    for _ in range(2):
        step()
    with MemoryMeter("cuda") as meter:
        step()
    return gpu_seconds(step, repeats=3), meter.peak_bytes
