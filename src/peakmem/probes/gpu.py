"""Helpers for probes that time a GPU: require one, and read its own clock."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

__all__ = ["gpu_seconds", "require_gpu"]


def require_gpu(what: str) -> None:
    """Raise RuntimeError, naming `what` needs a GPU, if torch finds no CUDA GPU."""
    if not torch.cuda.is_available():
        raise RuntimeError(
            f"{what} a CUDA GPU, but torch finds none here; run it on a machine that has one, "
            "with a CUDA build of torch"
        )


def gpu_seconds(work: Callable[[], object], *, repeats: int = 5, warm_ups: int = 1) -> float:
    """Return the median seconds of a call, by the GPU's clock, after warm-up calls.

    The time includes all work that the call starts, even on other streams.
    """
    for _ in range(warm_ups):
        work()
    seconds: list[float] = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        start.record()
        work()
        torch.cuda.synchronize()
        end.record()
        end.synchronize()
        seconds.append(start.elapsed_time(end) / 1000)
    return statistics.median(seconds)
