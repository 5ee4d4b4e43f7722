"""Lab 6's leak: batches that come from a host, one after another, and aren't released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

    `rows` is the largest batch's number of rows; each length occurs twice, half a list apart.
    """
    generator = torch.Generator().manual_seed(seed)
    host = HostTier()
    half = max(n_batches // 2, 1)
    handles = []
    for number in range(n_batches):
        length = max(rows - number % half * rows // (2 * half), 1)
        batch = torch.randn(length, columns, generator=generator)
        handles.append(host.put(batch * (number + 1)))
        del batch
    before = host.live_bytes
    means = [float(mean) for mean in mean_squares(host, handles)]
    after = host.live_bytes
    host.close()
    if after != before:
        raise ValueError("your function must leave the batches on the host as they were")
    return means


def find_the_leak(student: Namespace, metered: bool = True, **sizes: int) -> dict[str, Any]:
    """Run and measure the student's `mean_squares`."""
    small = {"rows": 2, "columns": 2}
    return measured_run(batch_means, student.mean_squares, sizes, small, metered=metered)
