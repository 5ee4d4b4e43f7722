"""Calls a student's function in several ranks, while the grader looks at them from outside."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from peakmem.core.errors import RankError
from peakmem.measure.ranks import launch_watched
from peakmem.measure.traffic import written_bytes
from peakmem.probes import MARK, Namespace

__all__ = ["idle", "metered", "run_ranks", "unwatched"]

_TIMEOUT = 120.0  # seconds; the grader's clock, which a busy machine doesn't hurry, is earlier

Ask = Callable[[Any], Any]

_kept: list[Any] = []  # what a rank holds until it ends


def unwatched(_question: Any) -> None:
    """Ask nobody: in a notebook no grader looks at the ranks from outside."""


def run_ranks(
    function: Callable[..., Any], world: int, *args: Any, ask: Ask = unwatched
) -> list[Any]:
    """Return what `function(*args)` returns in each of `world` ranks, in their order.

    Ahead of the call, and after it, all ranks hold still while the grader reads what each has sent
    and bounds its memory. So what the function makes itself counts too. Raises NotImplementedError
    if a rank did: the exercise isn't written yet.
    """
    try:
        return launch_watched(
            function,
            world,
            *args,
            before=partial(ask, {MARK: "ready"}),
            after=partial(ask, {MARK: "done"}),
            timeout=_TIMEOUT,
        )
    except RankError as error:
        if error.kind == NotImplementedError.__name__:
            raise NotImplementedError(error.function) from error
        raise


def metered(
    run: Callable[[], dict[str, Any]], *, measure: bool, keep: Callable[[], Any] | None = None
) -> dict[str, Any]:
    """Return what `run()` returns, and in a rank's `measure`d run its own figures besides.

    These are `rise_bytes`, by how much tensors' bytes rose at their peak, `held_bytes`, by how much
    they had risen at the end, and `sent_bytes`, what the rank wrote, mostly to connections; None
    where the system doesn't tell. What `keep` returns then lives until the rank has ended.
    """
    before = written_bytes()
    if not measure:
        found = run()
        _let_go(keep)
        return found
    from peakmem.measure.meter import MemoryMeter  # here, so that other probes load no torch

    with MemoryMeter("cpu", history=False) as meter:
        found = run()
        _let_go(keep)
    after = written_bytes()
    return {
        **found,
        "rise_bytes": meter.peak_bytes - meter.baseline_bytes,
        "held_bytes": meter.live_bytes - meter.baseline_bytes,
        "sent_bytes": None if before is None or after is None else after - before,
    }


def _let_go(keep: Callable[[], Any] | None) -> None:
    """Keep what is to be kept, and give back what nobody holds."""
    if keep is None:
        return
    _kept.append(keep())
    gc.collect()
    if sys.platform == "linux":
        with suppress(AttributeError):  # a C library that trims by itself
            ctypes.CDLL(None).malloc_trim(0)


def idle(_student: Namespace, world: int, ask: Ask) -> None:
    """Start ranks that do nothing: what they map is what each rank maps."""
    run_ranks(_nothing, world, ask=ask)


def _nothing() -> None:
    pass
