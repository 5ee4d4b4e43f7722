"""Calls a student's function in several ranks, while the grader inspects them from outside."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from peakmem.core.errors import RankError
from peakmem.measure.ranks import launch_watched
from peakmem.measure.traffic import written_bytes
from peakmem.probes import MARK, Namespace

__all__ = [
    "figures_of",
    "idle",
    "metered",
    "probing",
    "run_metered",
    "run_ranks",
    "sent_since",
    "unwatched",
]

_TIMEOUT = 120.0  # seconds; the grader's limit on processor time is reached first

Ask = Callable[[Any], Any]

_kept: list[Any] = []  # objects that live until the rank ends


def unwatched(_question: Any) -> None:
    """Replaces `ask` in a notebook, where no grader inspects the ranks."""


def run_ranks(
    function: Callable[..., Any], world: int, *args: Any, ask: Ask = unwatched
) -> list[Any]:
    """Return the results of `function(*args)` in each of `world` ranks, in rank order.

    Before and after the call, all ranks wait while the grader reads how much each has sent, and
    sets or lifts its memory limit. So everything that the function does counts. Raises
    NotImplementedError if a rank does, because then the exercise isn't written yet.
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


def run_metered(
    function: Callable[..., dict[str, Any]], world: int, *args: Any, measure: bool, ask: Ask
) -> list[dict[str, Any]]:
    """Return the results of `run_ranks`, with each rank's own figures if `measure`d."""
    return run_ranks(_metered_call, world, function, args, measure, ask=ask)


def _metered_call(
    function: Callable[..., dict[str, Any]], args: tuple[Any, ...], measure: bool
) -> dict[str, Any]:
    return metered(partial(function, *args), measure=measure)


def probing(name: str, run: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return a probe that calls `run` with the student's function or class of this name."""

    def probe(
        student: Namespace, metered: bool = True, ask: Ask = unwatched, **sizes: Any
    ) -> dict[str, Any]:
        return run(getattr(student, name), measure=metered, ask=ask, **sizes)

    return probe


def figures_of(found: list[dict[str, Any]], *names: str) -> dict[str, Any]:
    """Return the measured figures by name, for each rank; of `rise_bytes`, only the highest."""
    figures = {name: [rank[name] for rank in found if name in rank] for name in names}
    return {
        name: max(values) if name == "rise_bytes" else values
        for name, values in figures.items()
        if values
    }


def metered(
    run: Callable[[], dict[str, Any]], *, measure: bool, keep: Callable[[], Any] | None = None
) -> dict[str, Any]:
    """Return the result of `run()` and, if `measure`d, the rank's own figures.

    These are `rise_bytes`, the rise of tensors' bytes at their peak; `held_bytes`, the rise at the
    end; and `sent_bytes`, the bytes that the rank wrote, mostly to connections (None if the system
    doesn't count them). The result of `keep` then lives until the rank ends.
    """
    before = written_bytes()
    if not measure:
        found = run()
        _let_go(keep)
        return found
    from peakmem.measure.meter import MemoryMeter  # late, so that other probes don't load torch

    with MemoryMeter("cpu", history=False) as meter:
        found = run()
        _let_go(keep)
    return {
        **found,
        "rise_bytes": meter.rise_bytes,
        "held_bytes": meter.live_bytes - meter.baseline_bytes,
        "sent_bytes": sent_since(before),
    }


def sent_since(before: int | None) -> int | None:
    """Return the bytes that this rank wrote since `written_bytes()` was `before`."""
    after = written_bytes()
    return None if before is None or after is None else after - before


def _let_go(keep: Callable[[], Any] | None) -> None:
    """Keep the given objects, and return unused memory to the system.

    Collects no garbage, because a finalizer would tell the student's code that the run has ended.
    """
    if keep is None:
        return
    _kept.append(keep())
    if sys.platform == "linux":
        with suppress(AttributeError):  # a C library without malloc_trim
            ctypes.CDLL(None).malloc_trim(0)


def idle(_student: Namespace, world: int, ask: Ask) -> None:
    """Start ranks that do nothing; their memory is the overhead of every rank."""
    run_ranks(_nothing, world, ask=ask)


def _nothing() -> None:
    pass
