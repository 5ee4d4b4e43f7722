"""Probes of lab 6, swapping to the host."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from peakmem.execute.host_memory import HostTier
from peakmem.measure import meter
from peakmem.measure.dispatch import Operators
from peakmem.probes import Namespace, call_each, earlier_objects_set_aside
from peakmem.probes.gpu import gpu_seconds, require_gpu
from peakmem.probes.lab03 import large_tensors
from peakmem.probes.lab06.leak import batch_means, find_the_leak

__all__ = [
    "COPY_BYTES",
    "PROGRAMS",
    "batch_means",
    "find_the_leak",
    "gpu_overlap",
    "offloaded_adam",
    "plan_joint",
    "schedule",
    "stream_forward",
    "swap_saved_tensors",
    "worth_swapping",
]

Array = npt.NDArray[Any]
Calls = Sequence[Sequence[Any]]
Outcomes = list[tuple[Any, ...]]


def worth_swapping(student: Namespace, calls: Calls) -> Outcomes:
    """Call `worth_swapping(stage, link_bytes_per_s, flops_per_s)` for each of `calls`.

    A call's stage is a dict here, and an object with these attributes to the student.
    """

    def decide(stage: Mapping[str, Any], *rates: float) -> Any:
        return student.worth_swapping(SimpleNamespace(**stage), *rates)

    return call_each(decide, calls)


def schedule(student: Namespace, calls: Calls) -> Outcomes:
    """Call `schedule(stages, budget_bytes, link_bytes_per_s)` for each of `calls`.

    A call's stages are dicts here, and objects with these attributes to the student.
    """

    def plan(stages: Sequence[Mapping[str, Any]], budget_bytes: int, link: float) -> Any:
        found = student.schedule([SimpleNamespace(**s) for s in stages], budget_bytes, link)
        return [tuple(copy) for copy in found]

    return call_each(plan, calls)


def plan_joint(student: Namespace, calls: Calls) -> Outcomes:
    """Call `plan_joint(stages, budget_bytes, link_bytes_per_s)` for each of `calls`.

    A call's stages are dicts here, and objects with these attributes to the student.
    """

    def plan(stages: Sequence[Mapping[str, Any]], budget_bytes: int, link: float) -> Any:
        found = student.plan_joint([SimpleNamespace(**s) for s in stages], budget_bytes, link)
        return [str(treatment) for treatment in found]

    return call_each(plan, calls)


# Adam with its moments on the host.


def offloaded_adam(
    student: Namespace,
    models: Sequence[Mapping[str, Any]] | None = None,
    large: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    metered: bool = True,
) -> Any:
    """Train with the student's `OffloadedAdam`: small `models`, or `large` vectors.

    Models are in the form that lab 3's `adam_step` probe takes; each has a host of its own, and
    they take turns. Returns one dict a model: `parameters` has for each parameter an array with one
    row a call, its values after it; `changed` names the first thing that a call changed and should
    not have, None if there is none; `state_used` tells whether anything is on the host.

    `large` is in the form that lab 3's `lean_adam_step` probe takes. Returns `models`, the one
    model's watched values in the form above; `live_bytes`, what was on the host before the first
    step and after each; `cleared`, whether zero_grad() left no gradient but zeros; and if
    `metered`, `rise_bytes` and `numpy_rise_bytes`, the device's peak above parameters and
    gradients from before the optimizer was made, and `kept_bytes`, what was left of that in the
    end.
    """
    if large is None:
        return _train(student.OffloadedAdam, models or [], options or {})
    small = {**large, "shapes": [[3], [2]], "watched": [np.arange(3), np.arange(2)]}
    _large_steps(student.OffloadedAdam, options or {}, metered=False, **small)  # fills caches
    return _large_steps(student.OffloadedAdam, options or {}, metered=metered, **large)


def _train(
    make: Callable[..., Any], models: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    runs = [_AdamRun(make, model, options) for model in models]
    for number in range(max(len(model["gradients"][0]) for model in models)):
        for run in runs:
            run.call(number)
    return [run.report() for run in runs]


class _AdamRun:
    """One model, its host and optimizer, and what it looked like after each step."""

    def __init__(
        self, make: Callable[..., Any], model: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        self.model = model
        self.parameters = [torch.tensor(a, requires_grad=True) for a in model["parameters"]]
        self.host = HostTier()
        # A generator, as model.parameters() is.
        self.optimizer = make(iter(self.parameters), self.host, **options)
        self.noted: list[list[Array]] = []
        self.changed: str | None = None

    def call(self, number: int) -> None:
        skipped = {tuple(pair) for pair in self.model["skipped"]}
        given = []
        for i, parameter in enumerate(self.parameters):
            array = self.model["gradients"][i][number]
            row = None if (number, i) in skipped else torch.tensor(array)
            parameter.grad = None if row is None else row.clone()
            given.append(row)
        self.optimizer.step()
        for parameter, row in zip(self.parameters, given, strict=True):
            if row is None or ((g := parameter.grad) is not None and torch.equal(g, row)):
                continue
            self.changed = self.changed or "gradients"
        self.noted.append([p.detach().numpy().copy() for p in self.parameters])

    def report(self) -> dict[str, Any]:
        by_parameter = [np.stack(rows) for rows in zip(*self.noted, strict=True)]
        used = self.host.bytes_out > 0
        return {"parameters": by_parameter, "changed": self.changed, "state_used": used}


def _large_steps(
    make: Callable[..., Any],
    options: Mapping[str, Any],
    shapes: Sequence[Sequence[int]],
    seed: int,
    factors: Sequence[float],
    watched: Sequence[Array],
    *,
    metered: bool,
) -> dict[str, Any]:
    arrays, gradient_arrays = large_tensors(shapes, seed)
    parameters = [torch.from_numpy(array).requires_grad_() for array in arrays]
    gradients = [torch.from_numpy(array) for array in gradient_arrays]
    host = HostTier()
    live_bytes: list[int] = []
    noted: list[list[Array]] = []
    made: list[Any] = []
    changed: list[str] = []

    def train() -> None:
        optimizer = make(parameters, host, **options)
        made.append(optimizer)
        live_bytes.append(host.live_bytes)
        for factor in factors:
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient.mul_(factor)
            before = _at(watched, gradient_arrays)
            optimizer.step()
            if not all(map(np.array_equal, before, _at(watched, gradient_arrays))):
                changed.append("gradients")
            live_bytes.append(host.live_bytes)
            noted.append(_at(watched, arrays))

    figures: dict[str, Any] = {}
    if metered:
        meter_ = meter.MemoryMeter("cpu", count_numpy=True, history=False).track(
            parameters, gradients
        )
        with earlier_objects_set_aside(), meter_ as measured:
            train()
            gc.collect()
        figures = {
            "rise_bytes": measured.peak_bytes - measured.baseline_bytes,
            "numpy_rise_bytes": measured.numpy_peak_bytes,
            "kept_bytes": measured.live_bytes - measured.baseline_bytes,
        }
    else:
        train()
    made[0].zero_grad()
    left = [parameter.grad for parameter in parameters]
    by_parameter = [np.stack(rows) for rows in zip(*noted, strict=True)]
    report = {
        "parameters": by_parameter,
        "changed": changed[0] if changed else None,
        "state_used": live_bytes[-1] > 0,
    }
    return {
        "models": [report],
        "live_bytes": live_bytes,
        "cleared": all(grad is None or not grad.any() for grad in left),
        **figures,
    }


def _at(watched: Sequence[Array], arrays: Sequence[Array]) -> list[Array]:
    """The watched values of some arrays."""
    return [array[where] for array, where in zip(arrays, watched, strict=True)]


# Weights that come one layer at a time.


def stream_forward(
    student: Namespace,
    weights: Sequence[Array] | None = None,
    x: Array | None = None,
    width: int | None = None,
    fillings: Sequence[float] = (),
    rows: int = 0,
    metered: bool = True,
) -> dict[str, Any]:
    """Run the student's `stream_forward` on layers tanh(x @ weight), whose weights are on a host.

    `weights` and `x` are float64 arrays. Returns `output`, the output's values; `requires_grad`,
    whether it does; `gradients_on`, whether torch still records gradients afterwards; `loads`, the
    layers in the order of their load(); and `x_changed`.

    With a `width`, layers of float32 are as wide; one is filled with each of `fillings` / width,
    and the input is `rows` rows of ones. Returns `loads`, `corners`, the output's first and last
    value, and if `metered`, `rise_bytes`, the device's peak above the input's bytes.
    """
    if width is not None:
        # The first run is short: libraries take buffers then, and the meter counts them.
        _stream_large(student.stream_forward, width, fillings[:2], rows, metered=False)
        return _stream_large(student.stream_forward, width, fillings, rows, metered=metered)
    calls, read_loads = _logged()
    host = HostTier()
    layers = [_HostLayer(host, i, torch.tensor(w), calls) for i, w in enumerate(weights or [])]
    before = torch.tensor(x)
    given = before.clone()
    try:
        output = student.stream_forward(layers, given)
        gradients_on = torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    return {
        "output": output.detach().numpy().copy(),
        "requires_grad": bool(output.requires_grad),
        "gradients_on": gradients_on,
        "loads": read_loads(),
        "x_changed": not torch.equal(given, before),
    }


def _logged() -> tuple[Callable[[int], None], Callable[[], list[int]]]:
    """Return what notes a number, and what reads the notes; the list itself is out of reach."""
    notes: list[int] = []
    return (lambda number: notes.append(number)), notes.copy


class _Tanh(nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ self.weight)


class _HostLayer:
    """A layer whose weight waits on the host: `load()` brings it to the device, as a new module."""

    def __init__(
        self, host: HostTier, number: int, weight: torch.Tensor, note: Callable[[int], None]
    ) -> None:
        self.weight_bytes = weight.nbytes
        handle = host.put(weight)

        def load() -> nn.Module:
            note(number)
            return _Tanh(host.get(handle))

        self.load = load


def _stream_large(
    stream_forward: Callable[..., Any],
    width: int,
    fillings: Sequence[float],
    rows: int,
    *,
    metered: bool,
) -> dict[str, Any]:
    note, read_loads = _logged()
    host = HostTier()
    layers = [
        _HostLayer(host, i, torch.full((width, width), filling / width), note)
        for i, filling in enumerate(fillings)
    ]
    x = torch.ones(rows, width)
    figures = {}
    if metered:
        with (
            earlier_objects_set_aside(),
            meter.MemoryMeter("cpu", history=False).track(x) as measured,
        ):
            output = stream_forward(layers, x)
        figures["rise_bytes"] = measured.peak_bytes - measured.baseline_bytes
    else:
        output = stream_forward(layers, x)
    flat = output.detach().reshape(-1)
    return {"loads": read_loads(), "corners": [flat[0].item(), flat[-1].item()], **figures}


# What autograd saves, swapped.


def swap_saved_tensors(
    student: Namespace,
    program: str | None = None,
    seed: int = 0,
    blocks: int = 0,
    rows: int = 0,
    metered: bool = True,
) -> dict[str, Any]:
    """Run a program of `PROGRAMS`, or a deep chain, under the student's `swap_saved_tensors(host)`.

    Returns of a program what `run_program` does. Of a chain of so many `blocks`, each tanh(x @ w)
    on `rows` rows of 64 float32 ones, with ones on the diagonal of w, it returns `bytes_out`;
    `live_bytes`, what was left on the host; `corners`, the first and last value of each weight's
    gradient; and if `metered`, `rise_bytes`, the device's peak in forward and backward above input
    and weights.
    """
    if program is not None:
        return run_program(program, seed, student.swap_saved_tensors)
    with earlier_objects_set_aside():
        _chain(student.swap_saved_tensors, 2, rows, metered=False)
        return _chain(student.swap_saved_tensors, blocks, rows, metered=metered)


def run_program(
    program: str, seed: int, swap: Callable[[HostTier], AbstractContextManager[Any]]
) -> dict[str, Any]:
    """Run one of `PROGRAMS` with its forward under `swap(host)`, on tensors of this seed.

    Returns the host's figures once all is done: `bytes_out`, `bytes_in`, `live_bytes`; also
    `live_between_bytes`, those on the host after forward; `after_bytes`, how many a forward
    outside of the block put there; and `gradients`, of the input and every parameter (None: none).
    `retain` runs backward twice; `dropped` never does, and lets go of the graph. In `reused`, and
    in no other program, what one tensor had freed becomes the next one's memory.
    """
    with earlier_objects_set_aside():
        return _run_and_collect(program, seed, swap)


def _run_and_collect(
    program: str, seed: int, swap: Callable[[HostTier], AbstractContextManager[Any]]
) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    host = HostTier()
    forward, leaves = PROGRAMS[program](generator)
    if program != "reused":
        forward = _with_all_held(forward)
    with swap(host):
        loss = forward()
    live_between_bytes, out_bytes = host.live_bytes, host.bytes_out
    forward()  # swapping is over: this one stays on the device
    after_bytes = host.bytes_out - out_bytes
    if program == "retain":
        loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    if program != "dropped":
        loss.backward()  # type: ignore[no-untyped-call]
    if program == "dropped":
        del loss
    gc.collect()
    return {
        "gradients": [None if x.grad is None else x.grad.numpy().copy() for x in leaves],
        "bytes_out": out_bytes,
        "bytes_in": host.bytes_in,
        "live_bytes": host.live_bytes,
        "live_between_bytes": live_between_bytes,
        "after_bytes": after_bytes,
    }


Forward = Callable[[], torch.Tensor]
Program = Callable[[torch.Generator], tuple[Forward, list[torch.Tensor]]]


def _with_all_held(forward: Forward) -> Forward:
    """Keep all that `forward` makes until it ends, so that no two of its tensors share an address.

    Whether memory is used again is the allocator's choice, and may differ from run to run.
    """

    def run() -> torch.Tensor:
        made: list[Any] = []
        with Operators("cpu", lambda _name, _arguments, _had, result: made.append(result)):
            return forward()

    return run


def _drawn(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _leaf(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return _drawn(generator, *shape).requires_grad_()


def _parameter(generator: torch.Generator, *shape: int) -> nn.Parameter:
    return nn.Parameter(_drawn(generator, *shape) / shape[0] ** 0.5)


def _blocks(generator: torch.Generator) -> tuple[Forward, list[torch.Tensor]]:
    """Many equal blocks, each of which saves three tensors of one size."""
    x = _leaf(generator, 40, 16)
    weights = [_parameter(generator, 16, 16) for _ in range(8)]

    def forward() -> torch.Tensor:
        y = x
        for weight in weights:
            y = torch.tanh(y @ weight) * torch.sigmoid(y)
        return y.sum()

    return forward, [x, *weights]


def _views(generator: torch.Generator) -> tuple[Forward, list[torch.Tensor]]:
    """A tensor, its transpose, slices and an expanded row, and a parameter's views."""
    x = _leaf(generator, 24, 24)
    weight, row = _parameter(generator, 24, 24), _leaf(generator, 1, 24)

    def forward() -> torch.Tensor:
        y = torch.exp(x / 8)
        z = (y @ y.T) * y[:, ::2].repeat(1, 2) + y[3:9].sum() * y
        z = torch.nn.functional.linear(z, weight) @ weight[:12].T
        return (z.sum(1, keepdim=True) * (2 * row).expand(24, 24) * y.T).sum()

    return forward, [x, weight, row]


def _layouts(generator: torch.Generator) -> tuple[Forward, list[torch.Tensor]]:
    """Tensors that are not contiguous, of integers and truth values, of one value and of none."""
    x = _leaf(generator, 6, 5, 4)
    table = _parameter(generator, 9, 4)
    at = torch.randint(0, 9, (6, 5), generator=generator)
    rows = torch.randint(0, 6, (4,), generator=generator)

    def forward() -> torch.Tensor:
        y = torch.tanh(x.permute(2, 0, 1))  # its memory is in another order
        z = (y * y.transpose(1, 2).reshape(4, 6, 5)).permute(1, 2, 0)
        z = z * torch.nn.functional.embedding(at, table)
        z = torch.where(z > 0, z * z, z.relu())[rows]
        nothing = torch.sigmoid(z[:0])
        return z.pow(2).sum() * torch.exp(z.mean()) + (nothing * nothing).sum()

    return forward, [x, table]


def _twice(generator: torch.Generator) -> tuple[Forward, list[torch.Tensor]]:
    """One tensor that several operators save, and one weight that is used at every step."""
    x, weight = _leaf(generator, 30, 12), _parameter(generator, 12, 12)

    def forward() -> torch.Tensor:
        y = torch.sigmoid(x)
        for _ in range(3):
            y = y * y + torch.tanh(y @ weight.t()) * y
        return (y * y).mean()

    return forward, [x, weight]


class _Memory:
    """Memory for arrays of one shape: gives out again, at once, what nobody holds any more."""

    def __init__(self) -> None:
        self._lent: list[tuple[Array, weakref.ref[Array]]] = []

    def copy_of(self, values: Array) -> torch.Tensor:
        free = (i for i, (_, borrower) in enumerate(self._lent) if borrower() is None)
        place = next(free, None)
        whole = np.empty_like(values) if place is None else self._lent.pop(place)[0]
        loan = whole.view()  # the tensor's storage holds it, and lets go of it when it is freed
        loan[...] = values
        self._lent.append((whole, weakref.ref(loan)))
        return torch.from_numpy(loan)


def _reused(generator: torch.Generator) -> tuple[Forward, list[torch.Tensor]]:
    """Constants one after the other, each in the memory of the last one if that was let go of."""
    x = _leaf(generator, 16, 8)
    constants = [_drawn(generator, 16, 8).numpy() for _ in range(12)]
    memory = _Memory()

    def forward() -> torch.Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for constant in constants:
            total = total + (memory.copy_of(constant) * x).sum()  # saves the constant for x
        return total

    return forward, [x]


PROGRAMS: Mapping[str, Program] = {
    "reused": _reused,
    "blocks": _blocks,
    "views": _views,
    "layouts": _layouts,
    "twice": _twice,
    "retain": _twice,
    "dropped": _blocks,
}


def _chain(swap: Callable[..., Any], blocks: int, rows: int, *, metered: bool) -> dict[str, Any]:
    weights = [nn.Parameter(torch.eye(64)) for _ in range(blocks)]
    x = torch.ones(rows, 64)
    host = HostTier()

    def forward_and_backward() -> None:
        with swap(host):
            y = x
            for weight in weights:
                y = torch.tanh(y @ weight)
            loss = y.sum()
        del y
        loss.backward()  # type: ignore[no-untyped-call]

    figures = {}
    if metered:
        with meter.MemoryMeter("cpu", history=False).track(x, weights) as measured:
            forward_and_backward()
        figures["rise_bytes"] = measured.peak_bytes - measured.baseline_bytes
    else:
        forward_and_backward()
    gc.collect()
    gradients = [w.grad for w in weights if w.grad is not None]
    return {
        "bytes_out": host.bytes_out,
        "live_bytes": host.live_bytes,
        "corners": [[grad[0, 0].item(), grad[-1, -1].item()] for grad in gradients],
        **figures,
    }


# On a GPU: copies behind compute.

COPY_BYTES = 256 * 2**20
_PRODUCT_SIZE = 4096
_REPEATS = 5


def gpu_overlap(student: Namespace) -> dict[str, Any]:
    """Time compute and copies on this GPU one after the other, then the student's `overlapped`.

    Returns seconds: `compute`, `copies` and `student`; and `computed` and `copied`, whether the
    student's call did all of both. Raises RuntimeError where torch finds no CUDA GPU.
    """
    require_gpu("gpu_overlap times copies to")
    factor = torch.randn(_PRODUCT_SIZE, _PRODUCT_SIZE, device="cuda", dtype=torch.bfloat16)
    sources = [torch.full((COPY_BYTES // 16,), i, dtype=torch.int32).pin_memory() for i in range(4)]
    targets = [torch.zeros_like(source, device="cuda") for source in sources]
    product = torch.zeros_like(factor)

    def copy() -> None:
        for source, target in zip(sources, targets, strict=True):
            target.copy_(source, non_blocking=True)

    copy_seconds = gpu_seconds(copy)
    one = gpu_seconds(lambda: torch.mm(factor, factor, out=product))
    products = max(1, round(copy_seconds / one))
    calls = []

    def compute() -> None:
        calls.append(1)
        for _ in range(products):
            torch.mm(factor, factor, out=product)

    compute_seconds = gpu_seconds(compute)
    expected = product.clone()
    calls.clear()
    for tensor in (product, *targets):
        tensor.zero_()
    pairs = list(zip(sources, targets, strict=True))
    seconds = gpu_seconds(lambda: student.overlapped(compute, pairs), repeats=_REPEATS)
    return {
        "compute": compute_seconds,
        "copies": copy_seconds,
        "student": seconds,
        "computed": len(calls) == _REPEATS + 1 and bool(torch.equal(product, expected)),
        "copied": all(bool((target == i).all()) for i, target in enumerate(targets) if i),
    }
