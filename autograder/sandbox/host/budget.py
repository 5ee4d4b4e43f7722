"""Enforces a memory budget on a student process for one request, through the kernel.

The trusted side sets the budget from outside with prlimit before the request, and lifts it after
the reply. A call within its budget succeeds; a call beyond it is refused memory, and that refusal
is the verdict. docs/decisions/memory_budgets.md compares this with measuring resident sizes.

Two limits together count every byte. RLIMIT_DATA counts the private writable mappings of all
threads, touched or not; pages of files and code don't count. RLIMIT_AS counts all mappings,
including shared memory and windows into files in memory. Under a budget the process can't start
threads or processes, can open few files, pipes and sockets, can't grow its stack, and can't write
to files unless the budget allows it. The system call filter keeps the process from raising these
limits.
"""

from __future__ import annotations

import contextlib
import os
import resource
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.base import memory
from autograder.model.task import Budget
from autograder.sandbox.host.owned import as_owner

__all__ = ["HELD_BYTES", "Enforced", "Footprint", "footprint"]

# A notebook may hold this much before a measured call. Solved ones hold up to 7 MiB, in lab 10: the
# matrix library's buffers take 4.3 MiB, one for each kind of shape, and gaps in the heap the rest.
HELD_BYTES = 8 * 2**20
# A call may free this much of what was held before it: garbage, and the end of the C heap once the
# last block there is freed. In lab 10 that is 1.2 MiB, most of it gaps.
_LET_GO_BYTES = 2 * 2**20
_MOST_OPEN = 32  # files in a measured call: pipes and sockets hold bytes for their owner
_MORE_LEFT_OPEN = 12  # files that a notebook may leave open, beyond those of a prepared process
_KERNELS_OWN = "00:01"  # the device of anonymous shared memory, which is refused except on a GPU


@dataclass(frozen=True)
class Footprint:
    """The memory that a process maps, and its open files."""

    #: Bytes that RLIMIT_DATA counts.
    data_bytes: int
    #: Bytes of mappings that grow downwards, which only RLIMIT_AS counts.
    stack_bytes: int
    #: Bytes that RLIMIT_AS counts.
    mapped_bytes: int
    #: Bytes of mappings with the process's own data: anonymous, shared, or of files that aren't on
    #: any of `devices`.
    own_bytes: int
    #: The devices that hold the prepared process's libraries.
    devices: frozenset[str]
    #: The number of open files, pipes and sockets.
    open_files: int
    #: Whether it shares a map of a deleted file, which may be longer than the map.
    maps_deleted: bool = False


def footprint(pid: int, devices: frozenset[str] | None = None) -> Footprint:
    """Return a process's footprint; without `devices`, all mapped files count as libraries.

    If its mappings can't be read, everything except code counts as its own. Raises OSError if the
    process is gone.
    """
    data_bytes = memory.status_bytes(pid, "VmData")
    stack_bytes = memory.status_bytes(pid, "VmStk")
    mapped_bytes = memory.status_bytes(pid, "VmSize")
    open_files = len(_open_files(pid))
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except PermissionError:
        # The mappings of a process that gave up root need CAP_SYS_PTRACE to be read, but the size
        # of its code doesn't.
        own_bytes = mapped_bytes - memory.status_bytes(pid, "VmLib")
        return Footprint(data_bytes, stack_bytes, mapped_bytes, own_bytes, frozenset(), open_files)
    seen = set()
    own_bytes = 0
    maps_deleted = False
    for line in maps:
        addresses, rights, _, device, inode, *path = line.split(maxsplit=5)
        start, _, end = addresses.partition("-")
        anonymous = inode == "0"
        if not anonymous:
            seen.add(device)
        foreign = not anonymous and devices is not None and device not in devices
        shared = rights.endswith("s")
        if anonymous or foreign or shared:
            own_bytes += int(end, 16) - int(start, 16)
        deleted = path != [] and path[0].endswith(" (deleted)")
        maps_deleted |= shared and deleted and device != _KERNELS_OWN
    return Footprint(
        data_bytes=data_bytes,
        stack_bytes=stack_bytes,
        mapped_bytes=mapped_bytes,
        own_bytes=own_bytes,
        devices=frozenset(seen) if devices is None else devices,
        open_files=open_files,
        maps_deleted=maps_deleted,
    )


def _file_bytes(pid: int, places: Sequence[str]) -> int:
    """The total length of all files of a process's user, in `places` or open in the process.

    Holes count, since a process that maps such a file can fill them. Raises OSError if a folder
    can't be read; other users' folders may disappear meanwhile.
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
        # It may have been closed meanwhile, or the grader may lack CAP_SYS_PTRACE.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            yield descriptor.stat()
    waiting = [(place, user) for place in places]
    while waiting:
        folder, owner = waiting.pop()
        # Another user's folder may be gone by now; the process's own must not be.
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
    """A budget in force on process `pid`, whose footprint before any student code was `prepared`.

    `doubt` says why a call that stays within the budget proves nothing; empty if it does prove it.
    `places` are the folders it can write to, which count as memory unless the budget allows files.
    With `has_ranks` it may have children, which the caller puts under their own budgets. The caller
    must have it `stopped`, because a thread could otherwise change what this reads.
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
        # Checked under the limits, because no process or file can be added from here on.
        alone = has_ranks or not memory.descendants(pid)
        self.doubt = self._doubt(prepared, places, budget) if alone else _CHILDREN

    def lift(self) -> None:
        """Restore the limits, and doubt the call if it unmapped memory held before it.

        Raises OSError if the process is gone.
        """
        after = footprint(self._pid, self._devices)
        lost = (
            self._before.data_bytes - after.data_bytes,
            self._before.mapped_bytes - after.mapped_bytes,
        )
        if max(lost) > _LET_GO_BYTES:
            self.doubt = self.doubt or _LET_GO
        as_owner(self._pid, lambda: _set(self._pid, self._limits))

    def _limit(self, budget: Budget) -> dict[int, tuple[int, int]]:
        """Lower the soft limits, and return the previous ones."""
        lowered = {
            resource.RLIMIT_DATA: self._before.data_bytes + budget.bytes,
            resource.RLIMIT_AS: self._before.mapped_bytes + budget.bytes + budget.window_bytes,
            resource.RLIMIT_NPROC: 0,
            resource.RLIMIT_NOFILE: _MOST_OPEN,
            resource.RLIMIT_STACK: 0,  # `settle` has already mapped some below it
        }
        if not budget.files:
            lowered[resource.RLIMIT_FSIZE] = 0

        def lower() -> dict[int, tuple[int, int]]:
            before = {kind: resource.prlimit(self._pid, kind) for kind in lowered}
            # A notebook may hold so much that the budget would exceed the hard limit.
            now = {
                kind: (_at_most(hard, lowered[kind]), hard) for kind, (_, hard) in before.items()
            }
            _set(self._pid, now)
            return before

        return as_owner(self._pid, lower)

    def _doubt(self, prepared: Footprint, places: Sequence[str], budget: Budget) -> str:
        # Private copies of a library's pages are data but not anonymous, so both sizes count. And
        # code that unmaps a library's idle memory reduces own bytes, but neither data nor stack.
        before = self._before
        held_bytes = max(
            before.own_bytes - prepared.own_bytes,
            before.data_bytes + before.stack_bytes - prepared.data_bytes - prepared.stack_bytes,
        )
        most_open = prepared.open_files + _MORE_LEFT_OPEN
        if before.open_files > most_open:
            return _OPEN.format(most=most_open)
        if not budget.files:
            if before.maps_deleted:
                return _DELETED
            try:
                held_bytes += _file_bytes(self._pid, places) if places else 0
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


_HELD = (
    "Your notebook held {held:.0f} MiB of its own when this exercise's memory was measured; "
    "{most:.0f} MiB are disregarded. Delete large tensors, arrays and files that other cells leave "
    "behind. An instructor will look at this."
)
_OPEN = (
    "Your notebook had more than {most} files, pipes and sockets open when this exercise's memory "
    "was measured. Close them. An instructor will look at this."
)
_UNREADABLE = (
    "Your notebook left a folder that the grader could not read when this exercise's memory was "
    "measured. Remove it. An instructor will look at this."
)
_DELETED = (
    "Your notebook shared memory through a deleted file, whose length the grader could not tell, "
    "when this exercise's memory was measured. Close the map. An instructor will look at this."
)
_CHILDREN = (
    "Your notebook left processes running when this exercise's memory was measured, which could "
    "hold memory for it. End them. An instructor will look at this."
)
_LET_GO = (
    "Your code freed memory that was held before the measurement, so the budget was larger than "
    "intended. An instructor will look at this."
)
