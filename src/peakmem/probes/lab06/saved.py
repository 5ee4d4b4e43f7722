"""Probe of lab 6's saved tensors on a host: small programs, and a deep chain."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from peakmem.execute.host_memory import HostTier
from peakmem.measure import meter
from peakmem.measure.dispatch import Operators
from peakmem.probes import Namespace, earlier_objects_set_aside
from peakmem.probes.lab06.programs import PROGRAMS, Forward

__all__ = ["run_program", "swap_saved_tensors"]


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


def _with_all_held(forward: Forward) -> Forward:
    """Keep all that `forward` makes until it ends, so that no two of its tensors share an address.

    Whether memory is used again is the allocator's choice, and may differ from run to run.
    """

    def run() -> torch.Tensor:
        made: list[Any] = []
        with Operators("cpu", lambda _name, _arguments, _had, result: made.append(result)):
            return forward()

    return run


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
