"""Lab 6's leak: batches that come from a host, one after another, and aren't released."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from peakmem.execute.host_memory import Handle, HostTier
from peakmem.probes import Namespace
from peakmem.probes.leak import measured_run

__all__ = ["batch_means", "find_the_leak"]


def batch_means(
    mean_squares: Callable[[HostTier, Sequence[Handle]], Sequence[float]],
    n_batches: int,
    rows: int,
    columns: int,
    seed: int,
) -> list[float]:
    """Return `mean_squares(host, handles)` of batches on a host.

    `rows` is the largest batch's number of rows. Each length occurs twice, half a list apart, and
    the first handle occurs once more at the end.
    """
    generator = torch.Generator().manual_seed(seed)
    host = HostTier()
    half = max(n_batches // 2, 1)
    handles = []
    for number in range(n_batches):
        length = max(rows - number % half * rows // (2 * half), 1)
        batch = torch.randn(length, columns, generator=generator)
        handles.append(host.put(batch * (n_batches - number)))
        del batch
    handles += handles[:1]
    given, before = list(handles), (host.live_bytes, host.bytes_out)
    means = [_number(mean) for mean in _listed(mean_squares(host, handles))]
    after = (host.live_bytes, host.bytes_out)
    host.close()
    if after != before:
        raise ValueError("your function must leave the host as it is: no put, write or free")
    if handles != given:
        raise ValueError("your function must leave the list of handles as it was")
    return means


def _listed(means: Sequence[float]) -> Sequence[float]:
    if isinstance(means, Iterator):
        kind = type(means).__name__
        raise TypeError(f"your function must return a list, but it returned a {kind}")
    return means


def _number(mean: Any) -> float:
    if isinstance(mean, str):  # float() would accept it
        raise TypeError("your function must return numbers, but one is a string")
    return float(mean)


def find_the_leak(student: Namespace, metered: bool = True, **sizes: int) -> dict[str, Any]:
    """Run and measure the student's `mean_squares`."""
    small = {"rows": 2, "columns": 2}
    metered = metered and sizes["n_batches"] > 0  # without batches there is nothing to measure
    return measured_run(batch_means, student.mean_squares, sizes, small, metered=metered)
