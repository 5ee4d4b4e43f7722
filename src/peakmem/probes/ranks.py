"""Calls a student's function in several ranks, while the grader looks at them from outside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from peakmem.measure.ranks import launch_watched
from peakmem.probes import MARK, Namespace

__all__ = ["idle", "run_ranks"]

_TIMEOUT = 120.0  # seconds; the grader's clock, which a busy machine doesn't hurry, is earlier


def run_ranks(
    function: Callable[..., Any], world: int, *args: Any, ask: Callable[[Any], Any]
) -> list[Any]:
    """Return what `function(*args)` returns in each of `world` ranks, in their order.

    Ahead of the call, and after it, all ranks hold still while the grader reads what each has sent
    and bounds its memory. So what the function makes itself counts too.
    """
    return launch_watched(
        function,
        world,
        *args,
        before=partial(ask, {MARK: "ready"}),
        after=partial(ask, {MARK: "done"}),
        timeout=_TIMEOUT,
    )


def idle(_student: Namespace, world: int, ask: Callable[[Any], Any]) -> None:
    """Start ranks that do nothing: what they map is what each rank maps."""
    run_ranks(_nothing, world, ask=ask)


def _nothing() -> None:
    pass
