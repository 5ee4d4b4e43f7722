"""A bound on a student process's memory that the kernel enforces for one request.

The trusted side sets it from outside, by prlimit, before the request is sent, and lifts it after
the reply. A call within its budget succeeds, and one beyond it is refused memory: that fact is the
verdict. docs/decisions/memory_budgets.md compares this with what resident sizes tell.

Two limits together count every byte once. RLIMIT_DATA counts private writable mappings, of all
threads, whether touched or not; pages of files and code don't count. RLIMIT_AS counts all mappings,
shared memory and windows into files in memory among them. While a budget is in force the process
can start no thread or process, can open few files, pipes and sockets, and can write to no file
unless the budget allows it. The filter of system calls refuses to raise any of these limits again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from autograder.base import memory
from autograder.model.task import Budget

__all__ = ["HELD_BYTES", "Enforced", "Footprint", "footprint"]

_Result = TypeVar("_Result")

HELD_BYTES = 8 * 2**20  # what a notebook may hold before a measured call; honest ones hold under 6
_LET_GO_BYTES = 2**20  # garbage of the notebook's that a call may collect
_MOST_OPEN = 32  # files in a measured call: pipes and sockets hold bytes for whoever opens them
_MORE_LEFT_OPEN = 12  # than a prepared process has, by a notebook before it


@dataclass(frozen=True)
class Footprint:
    """What a process maps: `data_bytes` as RLIMIT_DATA counts, `mapped_bytes` as RLIMIT_AS does.

    `own_bytes` are mappings that hold data of the process's making: anonymous, shared, or of files
    that lie on none of the `devices` of the prepared process's libraries. `open_files` are how many
    files, pipes and sockets it has open.
    """

    data_bytes: int
    mapped_bytes: int
    own_bytes: int
    devices: frozenset[str]
    open_files: int


def footprint(pid: int, devices: frozenset[str] | None = None) -> Footprint:
    """Return what a process maps; without `devices`, all its files count as libraries.

    Where its mappings can't be read, all but code counts as its own. Raises OSError if the process
    is gone.
    """
    data_bytes, mapped_bytes = (
        memory.status_bytes(pid, "VmData"),
        memory.status_bytes(pid, "VmSize"),
    )
    open_files = len(_open_files(pid))
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except PermissionError:
        # A process that gave up root shows its mappings to no grader without CAP_SYS_PTRACE, but
        # how much of them is code.
        own_bytes = mapped_bytes - memory.status_bytes(pid, "VmLib")
        return Footprint(data_bytes, mapped_bytes, own_bytes, frozenset(), open_files)
    seen = set()
    own_bytes = 0
    for line in maps:
        addresses, rights, _, device, inode, *_path = line.split(maxsplit=5)
        start, _, end = addresses.partition("-")
        anonymous = inode == "0"
        if not anonymous:
            seen.add(device)
        foreign = not anonymous and devices is not None and device not in devices
        if anonymous or foreign or rights.endswith("s"):
            own_bytes += int(end, 16) - int(start, 16)
    return Footprint(
        data_bytes=data_bytes,
        mapped_bytes=mapped_bytes,
        own_bytes=own_bytes,
        devices=frozenset(seen) if devices is None else devices,
        open_files=open_files,
    )


def _file_bytes(pid: int, places: Sequence[str]) -> int:
    """Return the lengths of all files of a process's user in `places`, or that it has open.

    Holes count: a process that maps such a file can fill them. Raises OSError if a folder can't be
    read. Other users' folders may go meanwhile.
    """
    user, _ = memory.owner(pid)
    lengths = {
        (status.st_dev, status.st_ino): status.st_size
        for status in _statuses(pid, places, user)
        if stat.S_ISREG(status.st_mode) and status.st_uid == user
    }
    return sum(lengths.values())


def _statuses(pid: int, places: Sequence[str], user: int) -> Iterator[os.stat_result]:
    for descriptor in _open_files(pid):
        # It may be closed in between, or the grader may lack CAP_SYS_PTRACE.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            yield descriptor.stat()
    waiting = [(place, user) for place in places]
    while waiting:
        folder, owner = waiting.pop()
        # Another user's folder may be gone by now; one of the process's has no business to be.
        gone = () if owner == user else (FileNotFoundError,)
        with contextlib.suppress(*gone), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    yield status
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append((entry.path, status.st_uid))


def _open_files(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/fd").iterdir())


class Enforced:
    """A budget in force on process `pid`, whose mappings were `prepared` before any student code.

    `doubt` says why a call that stays within the budget proves nothing; it is empty if it does.
    `places` are the folders where it may write, which the budget takes for memory unless it allows
    files. With `has_ranks` it may have children, which the caller puts under budgets of their own.
    """

    def __init__(
        self,
        pid: int,
        budget: Budget,
        prepared: Footprint,
        places: Sequence[str] = (),
        *,
        has_ranks: bool = False,
    ) -> None:
        self._pid = pid
        self._devices = prepared.devices
        self._before = footprint(pid, prepared.devices)
        self._limits = self._limit(budget)
        # After the limits are set: what starts processes or makes files until then can't go on.
        alone = has_ranks or not memory.descendants(pid)
        self.doubt = self._doubt(prepared, () if budget.files else places) if alone else _CHILDREN

    def lift(self) -> None:
        """Set the limits back, and doubt the call if it unmapped what was there before it.

        Raises OSError if the process is gone.
        """
        after = footprint(self._pid, self._devices)
        lost = (
            self._before.data_bytes - after.data_bytes,
            self._before.mapped_bytes - after.mapped_bytes,
        )
        if max(lost) > _LET_GO_BYTES:
            self.doubt = self.doubt or _LET_GO
        _as_owner(self._pid, lambda: _set(self._pid, self._limits))

    def _limit(self, budget: Budget) -> dict[int, tuple[int, int]]:
        """Lower the soft limits, and return what they were."""
        lowered = {
            resource.RLIMIT_DATA: self._before.data_bytes + budget.bytes,
            resource.RLIMIT_AS: self._before.mapped_bytes + budget.bytes + budget.window_bytes,
            resource.RLIMIT_NPROC: 0,
            resource.RLIMIT_NOFILE: _MOST_OPEN,
        }
        if not budget.files:
            lowered[resource.RLIMIT_FSIZE] = 0

        def lower() -> dict[int, tuple[int, int]]:
            before = {kind: resource.prlimit(self._pid, kind) for kind in lowered}
            # A notebook may hold so much that the budget would go beyond what it may have at all.
            now = {
                kind: (_at_most(hard, lowered[kind]), hard) for kind, (_, hard) in before.items()
            }
            _set(self._pid, now)
            return before

        return _as_owner(self._pid, lower)

    def _doubt(self, prepared: Footprint, places: Sequence[str]) -> str:
        # Private copies of a library's pages are data, and anonymous to nobody: hence both.
        held_bytes = max(
            self._before.own_bytes - prepared.own_bytes,
            self._before.data_bytes - prepared.data_bytes,
        )
        most_open = prepared.open_files + _MORE_LEFT_OPEN
        if len(_open_files(self._pid)) > most_open:
            return _OPEN.format(most=most_open)
        if places:
            try:
                held_bytes += _file_bytes(self._pid, places)
            except OSError:
                return _UNREADABLE
        if held_bytes > HELD_BYTES:
            return _HELD.format(held=held_bytes / 2**20, most=HELD_BYTES / 2**20)
        return ""


def _at_most(hard: int, limit: int) -> int:
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


def _set(pid: int, limits: Mapping[int, tuple[int, int]]) -> None:
    for kind, soft_and_hard in limits.items():
        resource.prlimit(pid, kind, soft_and_hard)


def _as_owner(pid: int, call: Callable[[], _Result]) -> _Result:
    """Make a call with the real user and group id of a process, if this process is root's.

    The kernel lets a process set another's limits if their real ids are equal, or with a capability
    that root lacks in most containers. Ids belong to threads, so the call is made in one of its
    own: no process of that user may ever signal this one.
    """
    if os.geteuid() != 0:
        return call()
    user, group = memory.owner(pid)
    number_of_user, number_of_group = _SET_REAL_IDS[os.uname().machine]

    def impersonated() -> _Result:
        libc = ctypes.CDLL(None, use_errno=True)
        for number, own in ((number_of_group, group), (number_of_user, user)):
            if libc.syscall(number, own, -1, -1) != 0:
                raise OSError(ctypes.get_errno(), f"the ids of process {pid} are not to be had")
        return call()

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(impersonated).result()


# Linux's numbers of setresuid and setresgid. The C library's functions would change all threads.
_SET_REAL_IDS = {"x86_64": (117, 119), "aarch64": (147, 149)}

_HELD = (
    "Your notebook held {held:.0f} MiB of its own when this exercise's memory was measured; up to "
    "{most:.0f} MiB are left out of account. Delete large tensors, arrays and files that other "
    "cells leave behind. An instructor will look at this."
)
_OPEN = (
    "Your notebook had more than {most} files, pipes and sockets open when this exercise's memory "
    "was measured. Close them. An instructor will look at this."
)
_UNREADABLE = (
    "Your notebook left a folder that the grader could not read when this exercise's memory was "
    "measured. Remove it. An instructor will look at this."
)
_CHILDREN = (
    "Your notebook left processes running when this exercise's memory was measured, which could "
    "hold memory for it. End them. An instructor will look at this."
)
_LET_GO = (
    "Your code gave back memory that was there before it was measured, so the budget was not what "
    "it seems. An instructor will look at this."
)
