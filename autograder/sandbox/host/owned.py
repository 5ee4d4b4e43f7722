"""Acts on a process of another user as that user: signals it, and sets its limits."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from autograder.base import memory
from autograder.base.limits import MachineBusy

__all__ = ["as_owner", "stopped"]

_Result = TypeVar("_Result")

_STOP = 5.0  # seconds within which all threads must stop
_TICK = 0.0005  # seconds between checks
_SLOW = "This machine was too busy to stop your code for a moment before its memory was measured."
_STILL = {"T", "t", "Z", "X"}  # states of threads that can't run: stopped, traced, ended


@contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """Stop all threads of these processes in the block, so that nothing changes while it is read.

    Only another process of the same user could resume them. Raises OSError if one is gone, and
    MachineBusy if one doesn't stop in time.
    """
    with ExitStack() as going_on:
        for pid in pids:
            going_on.callback(_signal, pid, signal.SIGCONT)
            _signal(pid, signal.SIGSTOP)
        deadline = time.monotonic() + _STOP
        while not all(map(_is_still, pids)):
            if time.monotonic() > deadline:
                raise MachineBusy(_SLOW)
            time.sleep(_TICK)
        yield


def _signal(pid: int, number: int) -> None:
    as_owner(pid, lambda: os.kill(pid, number))


def _is_still(pid: int) -> bool:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            _, _, after = (thread / "stat").read_text(errors="replace").rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue  # this thread has just ended
        if after.split()[0] not in _STILL:
            return False
    return True


def as_owner(pid: int, call: Callable[[], _Result]) -> _Result:
    """Call a function with the real user and group ids of a process, if this process is root's.

    The kernel lets a process signal another or set its limits if their real ids are equal, or with
    a capability that root lacks in most containers. Ids belong to threads, so the call runs in a
    separate thread: processes of that user must never be able to signal this one.
    """
    if os.geteuid() != 0:
        return call()
    user, group = memory.owner(pid)
    number_of_user, number_of_group = _SET_REAL_IDS[os.uname().machine]

    def impersonated() -> _Result:
        libc = ctypes.CDLL(None, use_errno=True)
        for number, own in ((number_of_group, group), (number_of_user, user)):
            if libc.syscall(number, own, -1, -1) != 0:
                raise OSError(ctypes.get_errno(), f"the ids of process {pid} can't be taken")
        return call()

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(impersonated).result()


# Linux's numbers of setresuid and setresgid. The C library's functions would affect all threads.
_SET_REAL_IDS = {"x86_64": (117, 119), "aarch64": (147, 149)}
