"""Limits a submission's memory with a control group, including the kernel's memory for it.

A submission also holds memory that no process maps: socket and pipe buffers, mappings, page tables.
The system call filter refuses most of it, and a control group bounds the rest if the grader may
create one: below its own group if that is delegated to the grader only (version 2,
`systemd-run --user --scope -p Delegate=yes autograder ...`), or, as root, below any group (version
1). docs/threat_model.md says how much remains possible without one. No group counts file locks, so
the filter always refuses them.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["REMEDY", "Cgroup", "Parent", "claim", "enclosed", "parent"]

REMEDY = (
    "start the command as `systemd-run --user --scope -p Delegate=yes autograder ...`, or as root "
    "without `--user`"
)

_OWN = "autograder-itself"  # holds the grader's processes, because a parent group may hold none
_MADE = "autograder-{pid}-"
_MIB = 2**20
_TRIAL_BYTES = 64 * _MIB


@dataclass(frozen=True)
class _Files:
    """The names of a version's files; all but `memory` may be missing on a machine."""

    memory: str
    swap: str
    events: str
    processes: str = "pids.max"


_FILES = {
    1: _Files("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"),
    2: _Files("memory.max", "memory.swap.max", "memory.events"),
}


@dataclass(frozen=True)
class Parent:
    """A group below which the grader may create groups."""

    #: Its folder.
    path: Path
    #: The version of control groups, 1 or 2.
    version: int


class Cgroup:
    """A control group for one submission's processes. Raises OSError if it can't be created."""

    _numbers = itertools.count()

    def __init__(self, parent: Parent, memory_bytes: int, processes: int) -> None:
        self._files = _FILES[parent.version]
        self._path = parent.path / f"{_MADE.format(pid=os.getpid())}{next(self._numbers)}"
        self._path.mkdir()
        try:
            self._write(self._files.memory, memory_bytes)
            # Version 1 bounds memory and swap together.
            swap_bytes = 0 if parent.version == 2 else memory_bytes
            for name, value in ((self._files.swap, swap_bytes), (self._files.processes, processes)):
                if (self._path / name).exists():  # a kernel may lack the file
                    self._write(name, value)
        except BaseException:
            self.remove()
            raise

    def take_in(self, pid: int) -> None:
        """Move a process into the group. Its later forks join it; memory it already has doesn't."""
        self._write("cgroup.procs", pid)

    def ran_out(self) -> bool:
        """Tell whether the kernel killed a process of this group because memory ran out."""
        words = (self._path / self._files.events).read_text().split()
        return dict(zip(words[::2], words[1::2], strict=False)).get("oom_kill", "0") != "0"

    def remove(self) -> None:
        """Remove the group if all its processes are gone; otherwise `parent` sweeps it up later."""
        with contextlib.suppress(OSError):
            self._path.rmdir()

    def _write(self, name: str, value: int) -> None:
        (self._path / name).write_text(str(value))


def enclosed(pid: int, memory_bytes: int, processes: int) -> Cgroup | None:
    """Return a new group that holds a process; None if the grader can't create groups here.

    `memory_bytes` bounds what it uses from now on. Raises OSError if the process is gone.
    """
    place = parent()
    if place is None:
        return None
    group = Cgroup(place, memory_bytes, processes)
    try:
        group.take_in(pid)
    except BaseException:
        group.remove()
        raise
    return group


def claim() -> None:
    """Prepare this process's group to hold other groups, if no other process is in it.

    In version 2 a group whose children have limits can't hold processes, so this process moves into
    a child group. Call this before starting any process.
    """
    with contextlib.suppress(OSError):
        own = _own_group(2)
        if own is None or (own / "cgroup.procs").read_text().split() != [str(os.getpid())]:
            return
        if "memory" not in (own / "cgroup.controllers").read_text().split():
            return
        within = own / _OWN
        within.mkdir(exist_ok=True)
        (within / "cgroup.procs").write_text(str(os.getpid()))


@functools.cache
def parent() -> Parent | None:
    """Return the group below which groups can be created on this machine; None if there is none."""
    if not Path("/proc/self/cgroup").exists():
        return None  # not Linux, or a kernel without groups
    for candidate in _candidates():
        try:
            _sweep(candidate.path)
            trial = Cgroup(candidate, _TRIAL_BYTES, 1)
            trial.remove()
        except OSError:
            continue
        return candidate
    return None


def _candidates() -> Iterator[Parent]:
    own = _own_group(2)
    if own is not None and own.name == _OWN:
        with contextlib.suppress(OSError):
            (own.parent / "cgroup.subtree_control").write_text("+memory")
            with contextlib.suppress(OSError):  # RLIMIT_NPROC bounds processes without it
                (own.parent / "cgroup.subtree_control").write_text("+pids")
            yield Parent(own.parent, 2)
    legacy = _own_group(1)
    if legacy is not None:
        yield Parent(legacy, 1)


def _own_group(version: int) -> Path | None:
    """This process's group: in version 2's only hierarchy, or in version 1's for memory."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" if version == 2 else "memory" in controllers.split(","):
            break
    else:
        return None
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        root, place = mount.split()[3:5]
        name, _, options = kind.split(maxsplit=2)
        of_memory = name == "cgroup" and "memory" in options.split(",")
        if (name == "cgroup2" if version == 2 else of_memory) and Path(path).is_relative_to(root):
            return Path(place, Path(path).relative_to(root))
    return None


def _sweep(folder: Path) -> None:
    """Remove groups that killed graders left behind. A group with processes stays."""
    for left in folder.glob(_MADE.format(pid="*") + "*"):
        if not Path("/proc", left.name.split("-")[1]).exists():
            with contextlib.suppress(OSError):
                left.rmdir()
