"""Probe of lab 4's checkpoint: gradients, calls, random numbers, and saved bytes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils import checkpoint as torch_checkpoint

from peakmem.measure.meter import MemoryMeter
from peakmem.probes import Namespace, describe
from peakmem.probes.arrays import array_of, arrays_of, gradient_arrays
from peakmem.probes.lab04.figures import count_of, sums
from peakmem.probes.metering import rise_of
from peakmem.probes.own_work import refuse_calls_from
from peakmem.probes.plain_tensor import plain_tensor

__all__ = [
    "MANY",
    "MANY_TANHS",
    "TANHS",
    "checkpoint",
    "many_tanhs",
    "run_checkpointed",
    "run_many",
]

Call = Callable[..., Any]


def checkpoint(student: Namespace, metered: bool = True, **case: Any) -> dict[str, Any]:
    """Run a function through the student's `checkpoint`.

    See `run_checkpointed`, `_kept` for the kind "memory" and `run_many` for the kind "many".
    """
    if case["kind"] == "memory":
        # The first run imports modules. It has other numbers, so its results can't be reused for
        # the second run.
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

    Returns plain data: `outputs`, `gradients` (None if there is none), `calls` of the function
    after forward and after backward, and random numbers from the CPU's generator `between` forward
    and backward and `after` both. `failed` is the error that ended backward; empty if there was
    none. `arguments_same` says whether the arguments are unchanged.
    """
    torch.manual_seed(seed)
    x, y = (torch.randn(rows, columns, dtype=torch.float64, requires_grad=True) for _ in range(2))
    linear = nn.Linear(columns, columns, dtype=torch.float64)
    count, read_calls = _counted()
    given: list[tuple[Tensor, Tensor, bool]] = []

    def counted(fn: Call, *args: Any) -> Any:
        tensors = [arg for arg in args if torch.is_tensor(arg)]
        given.extend((t, t.detach().clone(), t.requires_grad) for t in tensors)
        return checkpoint(count(fn), *args)

    with torch.set_grad_enabled(kind != "no_grad"):
        out = _KINDS[kind](counted, linear, x, y)
    calls_forward = read_calls()
    outputs: list[Any] = list(out) if isinstance(out, (tuple, list)) else [out]
    between = torch.rand(4)
    failed = _backward([o for o in outputs if o.requires_grad], only_last=kind == "last of several")
    leaves = [x, y, *linear.parameters()]
    return {
        "outputs": arrays_of(outputs),
        "is_tuple": isinstance(out, tuple),
        "requires_grad": outputs[0].requires_grad,
        "gradients": gradient_arrays(leaves),
        "calls": [calls_forward, read_calls()],
        "between": array_of(between),
        "after": array_of(torch.rand(4)),
        "failed": failed,
        "arguments_same": all(
            torch.equal(t, values) and t.requires_grad == required for t, values, required in given
        ),
    }


def _counted() -> tuple[Callable[[Call], Call], Callable[[], int]]:
    """Return a wrapper that counts a function's calls, and a function that reads the count.

    The wrapper refuses to be called by torch's own checkpoint. The same function always gets the
    same wrapper, because a student's code may use it as a key.
    """
    calls = 0
    wrapped: dict[Call, Call] = {}

    def count(fn: Call) -> Call:
        def counted(*args: Any) -> Any:
            nonlocal calls
            refuse_calls_from(torch_checkpoint)
            calls += 1
            return fn(*args)

        return wrapped.setdefault(fn, counted)

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


# What each kind runs through the student's checkpoint `c`, given a linear layer, x and y.


def _arguments(c: Call, linear: nn.Module, x: Tensor, y: Tensor) -> Any:
    def fn(
        layer: nn.Module,
        power: int,
        x: Tensor,
        y: Tensor,
        shift: Any,
        picked: Tensor,
        fixed: Tensor,
    ) -> Any:
        z = layer(torch.tanh(x)) ** power * torch.sin(y) * fixed
        return z[picked] if shift is None else -z

    picked = torch.arange(len(x)).flip(0)  # integers, which have no gradient
    fixed = torch.full((x.shape[1],), 0.5, dtype=torch.float64)
    return c(fn, linear, 3, x, y, None, picked, fixed)


def _used_again(c: Call, linear: nn.Module, x: Tensor, y: Tensor) -> Any:
    """Run two checkpoints in a row; an inner result is used twice inside and once outside."""
    h = torch.tanh(c(lambda x: torch.sin(linear(x)), x))
    return h * c(lambda a, b: torch.exp(linear(a)) * b, h, h) + y


def _random(c: Call, linear: nn.Module, x: Tensor, y: Tensor) -> Any:
    """Run two checkpoints that draw random numbers; each must restore its own RNG state.

    A third one has no backward.
    """

    def fn(x: Tensor) -> Tensor:
        return F.dropout(torch.tanh(linear(x)), 0.5) * torch.rand_like(x)

    out = c(fn, c(fn, x))
    with torch.no_grad():
        c(fn, x)
    return out


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
    "one in a tuple": lambda c, linear, x, y: c(lambda x: (torch.tanh(linear(x)),), x),
    "no_grad": lambda c, linear, x, y: c(lambda x: torch.tanh(linear(x)), x),
}


TANHS = 40


def _kept(checkpoint: Call, kind: str, seed: int, rows: int, columns: int) -> dict[str, Any]:
    """Run forward and backward of many tanh under the meter.

    Returns `kept_bytes`, the bytes of storages live after forward but not before, without the
    output's; `operators`, the number of tanh operators that the meter saw in forward and in
    backward; and `sums` of the rows and columns of the output and of the gradient.
    """
    torch.manual_seed(seed)
    x = torch.randn(rows, columns, requires_grad=True)
    count, read_calls = _counted()
    fn = count(many_tanhs)

    with MemoryMeter("cpu", count_numpy=True).track(x) as forward:
        out = checkpoint(fn, x)
        gc.collect(1)  # young garbage only: a full collection takes longer than the rest
    calls_forward = read_calls()
    with MemoryMeter("cpu").track(x) as backward:
        out.sum().backward()
    return {
        "kept_bytes": forward.live_bytes - forward.baseline_bytes - plain_tensor(out).nbytes,
        "numpy_bytes": forward.numpy_peak_bytes,
        "rise_bytes": forward.rise_bytes,
        "calls": [calls_forward, read_calls()],
        "operators": [count_of("tanh", forward), count_of("tanh", backward)],
        "sums": [] if x.grad is None else [*sums(out.detach()), *sums(x.grad)],
    }


def many_tanhs(x: Tensor) -> Tensor:
    """Return the function to measure; each of its operators saves one result."""
    for _ in range(TANHS):
        x = torch.tanh(1.5 * x)
    return x


MANY, MANY_TANHS = 10, 8  # checkpoints of one input, and tanh operators in each


def run_many(
    checkpoint: Call, kind: str, seed: int, rows: int, columns: int, *, metered: bool
) -> dict[str, Any]:
    """Run forward and backward of the sum of `MANY` functions of x, each by `checkpoint(fn, x)`.

    Returns `sums` of the gradient's rows and columns; the `loss`; `calls` of the functions after
    forward and after backward; and if `metered`, `rise_bytes`, the rise of live bytes in both.
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

    found |= rise_of(forward_and_backward, x, metered=metered)
    found["calls"].append(read_calls())
    found["sums"] = [] if x.grad is None else sums(x.grad)
    return found


def _tanhs(factor: float, x: Tensor) -> Tensor:
    for _ in range(MANY_TANHS):
        x = torch.tanh(factor * x)
    return x
