"""Probe of lab 6's saved tensors on a host: small programs, and a deep chain."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from peakmem.execute.host_memory import HostTier
from peakmem.measure.dispatch import Operators
from peakmem.measure.storages import tensors_in
from peakmem.probes import Namespace, earlier_objects_set_aside
from peakmem.probes.arrays import gradient_arrays
from peakmem.probes.lab06.programs import PROGRAMS, Forward
from peakmem.probes.metering import rise_of

__all__ = ["run_chain", "run_program", "swap_saved_tensors"]


def swap_saved_tensors(
    student: Namespace,
    program: str | None = None,
    seed: int = 0,
    blocks: int = 0,
    rows: int = 0,
    metered: bool = True,
) -> dict[str, Any]:
    """Run a program of `PROGRAMS`, or a deep chain, under the student's `swap_saved_tensors(host)`.

    For a program, returns the result of `run_program`. A chain has `blocks` blocks of tanh(x @ w)
    on `rows` rows of 64 float32 ones, with ones on the diagonal of w. For a chain, returns
    `bytes_out`; `live_bytes`, the bytes left on the host; `corners`, the first and last value of
    each weight's gradient; and if `metered`, `rise_bytes`, the device's peak in forward and
    backward beyond input and weights.
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

    Returns the host's figures at the end (`bytes_out`, `bytes_in`, `live_bytes`); `within_bytes`,
    the bytes left on the host within the block after a first forward and backward of `within`;
    `live_between_bytes`, the host's live bytes after forward; `stay_bytes`, the bytes of storages
    that forward made and that are then still on the device, except the loss (0 for `reused`);
    `after_bytes`, the bytes that a forward outside the block sent to the host; and the `gradients`
    of the input and every parameter (None if there is none). `retain` runs backward twice;
    `dropped` releases the graph without a backward; `two_hosts` first runs forward under another
    host, and keeps that graph. Only in `reused` can a tensor get a freed tensor's memory.
    """
    with earlier_objects_set_aside():
        return _run_and_collect(program, seed, swap)


def _run_and_collect(
    program: str, seed: int, swap: Callable[[HostTier], AbstractContextManager[Any]]
) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    host = HostTier()
    forward, leaves = PROGRAMS[program](generator)
    made: list[weakref.ref[torch.UntypedStorage]] = []
    if program != "reused":
        forward = _with_all_held(forward, made)
    elsewhere = []  # losses of another block, whose graphs stay alive
    if program == "two_hosts":
        with swap(HostTier()):
            elsewhere.append(forward())
    within_bytes = 0
    with swap(host):
        if program == "within":
            forward().backward()  # type: ignore[no-untyped-call]
            gc.collect()
            within_bytes = host.live_bytes
        loss = forward()
    gc.collect()
    known = [tensor.untyped_storage() for tensor in (loss, *leaves)]
    stay_bytes = _live_bytes(made, known)
    live_between_bytes, out_bytes = host.live_bytes, host.bytes_out
    forward()  # outside the block, so its tensors stay on the device
    after_bytes = host.bytes_out - out_bytes
    if program == "retain":
        loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    if program != "dropped":
        loss.backward()  # type: ignore[no-untyped-call]
    if program == "dropped":
        del loss
    gc.collect()
    return {
        "gradients": gradient_arrays(leaves),
        "bytes_out": out_bytes,
        "bytes_in": host.bytes_in,
        "live_bytes": host.live_bytes,
        "within_bytes": within_bytes,
        "live_between_bytes": live_between_bytes,
        "stay_bytes": stay_bytes,
        "after_bytes": after_bytes,
    }


def _with_all_held(forward: Forward, made: list[weakref.ref[torch.UntypedStorage]]) -> Forward:
    """Keep all tensors of `forward` alive until it ends, so that no two of them share an address.

    Otherwise the allocator may reuse memory, differently from run to run. The storages of its
    results are added to `made`.
    """

    def run() -> torch.Tensor:
        results: list[Any] = []
        with Operators("cpu", lambda _name, _arguments, _had, result: results.append(result)):
            loss = forward()
        made[:] = [weakref.ref(tensor.untyped_storage()) for tensor in tensors_in(results)]
        return loss

    return run


def _live_bytes(
    made: Sequence[weakref.ref[torch.UntypedStorage]], known: Sequence[torch.UntypedStorage]
) -> int:
    """Return the bytes of the storages that are still alive, each once, except known ones."""
    live = {id(storage): storage for one in made if (storage := one()) is not None}
    for storage in known:
        live.pop(id(storage), None)
    return sum(storage.nbytes() for storage in live.values())


def run_chain(
    swap: Callable[[HostTier], AbstractContextManager[object]],
    host: HostTier,
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
) -> None:
    """Run a chain of blocks tanh(x @ weight) forward under `swap(host)`, then backward."""
    with swap(host):
        y = x
        for weight in weights:
            y = torch.tanh(y @ weight)
        loss = y.sum()
    del y
    loss.backward()  # type: ignore[no-untyped-call]


def _chain(swap: Callable[..., Any], blocks: int, rows: int, *, metered: bool) -> dict[str, Any]:
    weights = [nn.Parameter(torch.eye(64)) for _ in range(blocks)]
    x = torch.ones(rows, 64)
    host = HostTier()

    figures = rise_of(lambda: run_chain(swap, host, x, weights), x, weights, metered=metered)
    gc.collect()
    gradients = [w.grad for w in weights if w.grad is not None]
    return {
        "bytes_out": host.bytes_out,
        "live_bytes": host.live_bytes,
        "corners": [[grad[0, 0].item(), grad[-1, -1].item()] for grad in gradients],
        **figures,
    }
