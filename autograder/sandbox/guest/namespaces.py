"""Isolates one submission's process in its own namespaces, mounts and limits.

Linux only. It runs inside bubblewrap, where the file system is already read-only and holds only
Python and the course's library, without a network. Each submission then gets its own processes,
users, mounts and network, its own bounded /tmp, and a system call filter.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import resource
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from autograder.sandbox.guest.listener import hand_over_listener
from autograder.sandbox.guest.loopback import open_loopback
from autograder.sandbox.guest.seccomp import STACK_BYTES, refuse_system_calls

__all__ = [
    "drop_bounding_set",
    "give_up_capabilities",
    "prctl",
    "set_limits",
    "shut_in",
    "silence_terminal",
]

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUTS = 0x04000000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20, 0x1000, 0x4000, 0x40000
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 4, 38, 24
_CAPABILITIES = 64  # more than any kernel has; dropping a missing one fails harmlessly
_CAPABILITY_VERSION_3 = 0x20080522
_INSIDE_ID = 1000  # the user and group id that the student's code sees

_libc = ctypes.CDLL(None, use_errno=True)


def shut_in(limits: Mapping[str, int], connection: socket.socket | None = None) -> None:
    """Isolate this process, and return as process 1 of its own process namespace.

    The calling process ends here with exit status 0, and its child returns. `limits` has
    `memory_bytes` (address space beyond what is mapped now, and beyond torch's libraries if a cell
    may still import them), `tmp_bytes`, `shm_bytes`, `files`
    (inodes of /tmp), `processes` and `cpu_seconds`. With a `gpu`, two things that CUDA needs stay
    open: unlimited address space, and pages shared by processes but not mapped from a file. With
    `ranks`, processes may talk to each other over a loopback interface. The other end of
    `connection` gets the `listener`.
    Raises OSError if a layer can't be set up.
    """
    outer_user, outer_group = os.getuid(), os.getgid()
    prctl(_PR_SET_DUMPABLE, 1)
    namespaces = _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWIPC
    _check(_libc.unshare(namespaces | _CLONE_NEWNET | _CLONE_NEWUTS), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{_INSIDE_ID} {outer_user} 1")
    Path("/proc/self/gid_map").write_text(f"{_INSIDE_ID} {outer_group} 1")
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE, "")
    files = limits["files"]
    for place, size in (("/tmp", limits["tmp_bytes"]), ("/dev/shm", limits["shm_bytes"])):
        _mount("tmpfs", place, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={size},nr_inodes={files}")
    if os.fork():
        os._exit(0)
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "")
    Path("/proc/sys/user/max_user_namespaces").write_text(
        "0"
    )  # no further namespaces for the student
    if limits["ranks"]:
        open_loopback()
    # Files in /dev would count as nobody's memory and remain for the next student. So would pages
    # of /dev/zero that processes have shared and released.
    if not limits["gpu"]:
        _mount("/dev/null", "/dev/zero", None, _MS_BIND, "")
    read_only = _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV
    _mount(None, "/dev", None, read_only, "")
    _mount(None, "/proc", None, read_only | _MS_NOEXEC, "")
    Path("/tmp/home").mkdir()
    os.chdir("/tmp/home")
    os.setsid()
    silence_terminal()
    set_limits(limits)
    drop_bounding_set()
    give_up_capabilities()
    if connection is not None:
        hand_over_listener(connection)
    refuse_system_calls(gpu=bool(limits["gpu"]), ranks=bool(limits["ranks"]))


def set_limits(limits: Mapping[str, int]) -> None:
    """Set the limits that the kernel enforces per process or per user; see `shut_in`."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    addresses = mapped + limits["memory_bytes"] + _torch_bytes()
    if limits["gpu"]:  # CUDA reserves addresses for all memory of the GPU and the host
        addresses = resource.RLIM_INFINITY
    for kind, limit in (
        (resource.RLIMIT_AS, addresses),
        (resource.RLIMIT_STACK, _lower(resource.RLIMIT_STACK, STACK_BYTES)),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_FSIZE, limits["tmp_bytes"]),
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, 256),
    ):
        resource.setrlimit(kind, (limit, limit))


def _lower(kind: int, limit: int) -> int:
    """The limit, or the current hard limit if that is lower."""
    hard = resource.getrlimit(kind)[1]
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


def _torch_bytes() -> int:
    """The address space that torch's libraries, with CUDA's, take if a cell imports it later."""
    torch = None if "torch" in sys.modules else importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        return 0
    package = Path(torch.origin).parent
    libraries = [*package.glob("lib/*.so*"), *package.parent.glob("nvidia/*/lib/*.so*")]
    return sum(path.stat().st_size for path in libraries)


def drop_bounding_set() -> None:
    """Prevent programs started from here on from gaining capabilities."""
    for capability in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def give_up_capabilities() -> None:
    """Give up every capability, including those that a new user namespace grants its creator."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, nothing), "capset")
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def prctl(option: int, value: int) -> None:
    """Set a property of this process. Raises OSError if the kernel refuses."""
    _check(_libc.prctl(option, value, 0, 0, 0), f"prctl({option})")


def silence_terminal() -> None:
    """Redirect the standard streams to nowhere; cells' prints are recorded above that level."""
    sys.stdout.flush()
    nowhere = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind)]
    result = _libc.mount(*encoded, ctypes.c_ulong(flags), data.encode())
    _check(result, f"mounting {kind or 'anew'} on {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what} failed: {os.strerror(number)}")
