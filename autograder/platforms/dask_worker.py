"""Runs on a Dask worker: each item in a process of its own, kept between items.

A task hands its item to a process that is made and guarded as `engine` makes it, so what kills a
grading process kills no Dask worker.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import tempfile
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from autograder.base.pool import Failure, Solo, Work

__all__ = ["Plan", "do", "release"]


@dataclass(frozen=True)
class Plan:
    """What all tasks of one run share."""

    id: str
    work: Work[Any, Any]


_solos: dict[tuple[str, int], Solo[Any, Any]] = {}  # by plan and thread
_lock = threading.Lock()


def do(plan: Plan, item: Any) -> Any:
    """Do one item in a process of this thread's own, kept for the next item of the run."""
    try:
        return _solo(plan).do(item)
    except Exception as error:  # this machine's fault, whose name Dask keeps with a result alone
        return Failure(f"{type(error).__name__}: {error}")


def release(plan: str) -> None:
    """End the processes that are kept for a run."""
    with _lock:
        ended = [_solos.pop(key) for key in list(_solos) if key[0] == plan]
    for solo in ended:
        solo.close()


def _solo(plan: Plan) -> Solo[Any, Any]:
    thread = threading.get_ident()
    with _lock:
        # A controller that was killed could not say that its run is over; the next one does.
        for other in [key for key in _solos if key[1] == thread and key[0] != plan.id]:
            _solos.pop(other).close()
        if (plan.id, thread) not in _solos:
            # Dask's nanny marks its workers as daemons, to which multiprocessing denies children.
            # Ours end by themselves when their worker dies.
            multiprocessing.process.current_process()._config.pop("daemon", None)  # type: ignore[attr-defined]
            _solos[plan.id, thread] = Solo(plan.work, _slot(thread))
        return _solos[plan.id, thread]


@cache
def _slot(_thread: int) -> int:
    """A slot that no other Dask worker of this machine has, held until this process ends."""
    folder = Path(tempfile.gettempdir(), f"autograder-slots-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    slot = 0
    while True:
        held = os.open(folder / str(slot), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            slot += 1
        else:
            return slot
