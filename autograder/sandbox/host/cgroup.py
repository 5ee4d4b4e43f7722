"""A control group around one submission: bounds the kernel's own memory too.

A submission's processes hold memory that no process maps: buffers of sockets and pipes, mappings,
page tables. The filter of system calls refuses most of it, and a control group bounds the rest, if
the grader may make one: below its own group, if that is delegated to the grader alone (version 2,
`systemd-run --user --scope -p Delegate=yes autograder ...`), or as root below whatever group it is
in (version 1). Without one, docs/threat_model.md says how much is left. File locks count in no
group either, so the filter refuses them everywhere.
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

_OWN = "autograder-itself"  # where the grader's processes go, since a parent may hold none
_MADE = "autograder-{pid}-"
_MIB = 2**20
_TRIAL_BYTES = 64 * _MIB


@dataclass(frozen=True)
class _Files:
    """What the files of a version are called. `limits` may be missing but for the first."""

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
    """A group below which the grader may make others."""

    path: Path
    version: int


class Cgroup:
    """A group of one submission's processes. Raises OSError where it cannot be had."""

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
                if (self._path / name).exists():  # the kernel may do without
                    self._write(name, value)
        except BaseException:
            self.remove()
            raise

    def take_in(self, pid: int) -> None:
        """Move a process here. What it forks belongs here too; what it held before does not."""
        self._write("cgroup.procs", pid)

    def ran_out(self) -> bool:
        """Tell whether the kernel killed a process of this group for want of memory."""
        words = (self._path / self._files.events).read_text().split()
        return dict(zip(words[::2], words[1::2], strict=False)).get("oom_kill", "0") != "0"

    def remove(self) -> None:
        """Remove the group, if all of its processes are gone; `parent` looks for others later."""
        with contextlib.suppress(OSError):
            self._path.rmdir()

    def _write(self, name: str, value: int) -> None:
        (self._path / name).write_text(str(value))


def enclosed(pid: int, memory_bytes: int, processes: int) -> Cgroup | None:
    """Return a new group with a process in it, or None if this machine lets the grader make none.

    `memory_bytes` are what it may use from now on. Raises OSError if the process is gone.
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
    """Get this process's group ready for others below it, if it is this process's alone.

    In version 2 a group with others that have limits holds no process of its own, so this one moves
    into one below. To be called before any process is started.
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
    """Return where groups for submissions can be made on this machine, or None if they can't."""
    if not Path("/proc/self/cgroup").exists():
        return None  # no Linux, or a kernel without groups
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
            with contextlib.suppress(OSError):  # how many processes there are is bounded without
                (own.parent / "cgroup.subtree_control").write_text("+pids")
            yield Parent(own.parent, 2)
    legacy = _own_group(1)
    if legacy is not None:
        yield Parent(legacy, 1)


def _own_group(version: int) -> Path | None:
    """The folder of this process's group: of the only hierarchy of version 2, or of memory's."""
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
    """Remove what graders left that were killed. A group that still has processes stays."""
    for left in folder.glob(_MADE.format(pid="*") + "*"):
        if not Path("/proc", left.name.split("-")[1]).exists():
            with contextlib.suppress(OSError):
                left.rmdir()
