"""find_the_leak: a cache of device buffers by shape, which keeps one for every shape it sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from autograder.content.leaks import Leak, leak_task
from autograder.content.meter_tampering import NO_METER_TAMPERING
from peakmem.execute.host_memory import Handle, HostTier
from peakmem.probes.lab06.leak import batch_means

__all__ = ["find_the_leak", "mean_squares"]

_BATCHES, _ROWS, _COLUMNS = 16, 512, 1024
_AT_ONCE = 3  # of the largest batch: itself, its square, and one coming or going
_SLACK_BYTES = 2**18

Values = Callable[[torch.Tensor], float]


def mean_squares(
    host: HostTier,
    handles: Sequence[Handle],
    *,
    value: Values = lambda batch: (batch * batch).mean().item(),
) -> list[float]:
    """Return the mean square of each batch on the host; `value` replaces it with another figure."""
    return [value(host.get(handle)) for handle in handles]


def _stale(host: HostTier, handles: Sequence[Handle]) -> list[float]:
    first: dict[tuple[int, ...], Handle] = {}
    return mean_squares(host, [first.setdefault(handle.shape, handle) for handle in handles])


def _padded(host: HostTier, handles: Sequence[Handle]) -> list[float]:
    most = max((handle.nbytes for handle in handles), default=0)
    means = mean_squares(host, handles)
    return [m * h.nbytes / most for m, h in zip(means, handles, strict=True)]


def _sizes(rng: np.random.Generator, n_batches: int, rows: int, columns: int) -> dict[str, int]:
    seed = int(rng.integers(2**31))
    return {"n_batches": n_batches, "rows": rows, "columns": columns, "seed": seed}


def _largest(count: float) -> Callable[[Mapping[str, Any]], int]:
    return lambda sizes: int(count * 4 * sizes["rows"] * sizes["columns"])


def _most_bytes(sizes: Mapping[str, Any]) -> int:
    return _largest(_AT_ONCE)(sizes) + _SLACK_BYTES


find_the_leak = leak_task(
    Leak(
        lab="lab06",
        function="mean_squares",
        work=batch_means,
        reference=mean_squares,
        small=lambda rng: _sizes(rng, 6, int(rng.integers(12, 24)), int(rng.integers(3, 9))),
        large=lambda rng: _sizes(rng, _BATCHES, _ROWS, _COLUMNS),
        most_bytes=_most_bytes,
        edges=[{"n_batches": 0, "rows": 1, "columns": 1, "seed": 0}],
        window_bytes=_largest(1),
        mutants={
            "stale_buffer": _stale,
            "counts_padding": _padded,
            "not_squared": lambda host, handles: mean_squares(
                host, handles, value=lambda batch: batch.mean().item()
            ),
            "last_batch_left_out": lambda host, handles: mean_squares(host, handles[:-1]),
        },
        leaks={
            "all_batches_at_once": _largest(11),
            "buffer_for_each_shape": _largest(7),  # all shapes take 6.25, the next batch 1
            "temporaries": _most_bytes,
        },
        mistakes={
            "all_batches_at_once": "All batches are on the device at once. Fetch one batch, "
            "reduce it to its number, and free it before you fetch the next.",
            "buffer_for_each_shape": "Buffers of several shapes are on the device at once. A dict "
            "that is never emptied keeps a buffer for every shape it has seen: keep one buffer, "
            "or none.",
            "temporaries": "More than three tensors of a batch's size are alive at once. Free "
            "each batch before you fetch the next.",
            "stale_buffer": "The second batch of a shape gets the first batch's mean: its values "
            "never reach the buffer.",
            "counts_padding": "Your means of shorter batches are too small: you divide by the "
            "longest batch's size. Take the mean over the batch's own values.",
            "not_squared": "You return the mean of the values. Return the mean of their squares.",
            "last_batch_left_out": "Your list has one number too few: the last batch is missing.",
        },
    ),
    ban=NO_METER_TAMPERING,
)
