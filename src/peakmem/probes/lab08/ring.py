"""Probe of lab 8's all-reduce: its sums, its peak, and what each rank sends."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from peakmem.probes import Namespace
from peakmem.probes.own_work import refusing_operators
from peakmem.probes.ranks import Ask, figures_of, run_metered, unwatched

__all__ = ["checksums", "given", "ring_all_reduce", "run_all_reduce", "values"]

AllReduce = Callable[[Tensor], None]

# Parts of the names of torch's collective operators. Only send, recv and barrier stay allowed.
_COLLECTIVES = (
    "c10d::_all",
    "c10d::_reduce",
    "c10d::all",
    "c10d::broadcast",
    "c10d::gather",
    "c10d::reduce",
    "c10d::scatter",
    "c10d_functional::",
)


def values(length: int, rank: int, seed: int) -> Tensor:
    """Return a rank's input: multiples of 1/8, whose sums are exact in any order."""
    generator = torch.Generator().manual_seed(seed + rank)
    return torch.empty(length).random_(-999, 1000, generator=generator).div_(8)


def given(lengths: Sequence[int], rank: int, seed: int) -> list[Tensor]:
    """Return a rank's inputs; inputs of the same length have different values."""
    return [values(n, rank, seed + 100 * number) for number, n in enumerate(lengths)]


def ring_all_reduce(
    student: Namespace,
    metered: bool = True,
    ask: Ask = unwatched,
    **run: Any,
) -> dict[str, Any]:
    """Call the student's `ring_all_reduce`; see `run_all_reduce`."""
    function = student.ring_all_reduce

    def by_hand(x: Tensor) -> None:
        with refusing_operators(*_COLLECTIVES):
            function(x)

    return run_all_reduce(by_hand, measure=metered, ask=ask, **run)


def run_all_reduce(
    all_reduce: AllReduce,
    world: int,
    lengths: Sequence[int],
    seed: int,
    *,
    large: bool = False,
    measure: bool = True,
    ask: Ask = unwatched,
) -> dict[str, Any]:
    """Call `all_reduce(x)` in `world` ranks, on a float32 tensor of each length in turn.

    Returns `ranks`, each rank's list of tensors afterwards, or their `checksums` for a `large` run.
    With `measure`, also returns the `rise_bytes` of the rank with the highest peak, including x,
    and each rank's `sent_bytes`.
    """
    run = (all_reduce, lengths, seed, large)
    found = run_metered(_reduced, world, *run, measure=measure, ask=ask)
    return {
        "ranks": [rank["tensors"] for rank in found],
        **figures_of(found, "rise_bytes", "sent_bytes"),
    }


def _reduced(
    all_reduce: AllReduce, lengths: Sequence[int], seed: int, large: bool
) -> dict[str, Any]:
    rank = torch.distributed.get_rank()
    return {"tensors": [_after(all_reduce, x, large) for x in given(lengths, rank, seed)]}


def _after(all_reduce: AllReduce, x: Tensor, large: bool) -> Any:
    all_reduce(x)
    return checksums(x) if large else x.numpy()


def checksums(x: Tensor) -> list[int]:
    """Return a checksum for each piece of float32 values, to which every value contributes.

    Sums wouldn't do, because a solution could all-reduce them instead of the values.
    """
    # Adding 0.0 turns -0.0 into 0.0; piece by piece, to avoid copying everything.
    return [zlib.crc32((part + 0.0).numpy().tobytes()) for part in torch.split(x, 2**16)]
