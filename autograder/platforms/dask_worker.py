"""Runs on a Dask worker: handles each item in a separate process, kept between items.

The process is created and guarded as in `base.pool`, so anything that kills it doesn't kill the
Dask worker.
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

__all__ = ["SharedWork", "do", "release"]


@dataclass(frozen=True)
class SharedWork:
    """The data that all tasks of one run share."""

    #: Identifies the run.
    id: str
    #: The work on each item.
    work: Work[Any, Any]


_solos: dict[tuple[str, int], Solo[Any, Any]] = {}  # by run and thread
_lock = threading.Lock()


def do(shared: SharedWork, item: Any) -> Any:
    """Handle one item in this thread's process, which is kept for the run's next item."""
    try:
        return _solo(shared).do(item)
    except Exception as error:  # Dask keeps the worker's name only with a result
        return Failure(f"{type(error).__name__}: {error}")


def release(run: str) -> None:
    """End the processes kept for a run."""
    with _lock:
        ended = [_solos.pop(key) for key in list(_solos) if key[0] == run]
    for solo in ended:
        solo.close()


def _solo(shared: SharedWork) -> Solo[Any, Any]:
    thread = threading.get_ident()
    with _lock:
        # A killed controller couldn't end its run, so the next run does.
        for other in [key for key in _solos if key[1] == thread and key[0] != shared.id]:
            _solos.pop(other).close()
        if (shared.id, thread) not in _solos:
            # Dask's nanny marks its workers as daemons, which multiprocessing refuses children.
            # Ours end by themselves when their worker dies.
            multiprocessing.process.current_process()._config.pop("daemon", None)  # type: ignore[attr-defined]
            _solos[shared.id, thread] = Solo(shared.work, _slot(thread))
        return _solos[shared.id, thread]


@cache
def _slot(_thread: int) -> int:
    """A slot unused by other Dask workers of this machine, held until this process ends."""
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
