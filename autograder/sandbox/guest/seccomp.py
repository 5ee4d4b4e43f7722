"""Refuses certain system calls to a student's process, with a filter in the kernel.

The filter closes gaps that namespaces and limits leave. Some memory counts towards no process:
memory files and System V memory, pages that processes share and release, huge pages, and
swapped-out pages. The kernel's own memory isn't counted either: file locks, file watches, timers,
sockets waiting to be accepted. Some ways of writing to files don't count as writes. A process that
hides its memory or its open files, or forges where its stack begins, can't be watched. A process
that chooses its processors takes time from its neighbours. Sockets to a virtual machine's host
belong to no network namespace. The remaining calls are those that no honest notebook needs but
kernel exploits do.

Long because one table lists each refused call, with its numbers and the reason.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

__all__ = [
    "REFUSED",
    "STACK_BYTES",
    "Step",
    "filter_system_calls",
    "program_of",
    "refuse_links",
    "refuse_system_calls",
    "stack_begins",
]

# Linux numbers the calls differently on x86-64 and on 64-bit ARM. Both are in the kernel's
# headers: asm/unistd_64.h and asm-generic/unistd.h.
REFUSED = {
    # Memory that belongs to no process.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "process_madvise": (440, 440),
    # Memory protection, which only `mprotect` may change; see `listener`.
    "pkey_mprotect": (329, 288),
    # Different parts of a file in turn, through one mapping of any size.
    "remap_file_pages": (216, 234),
    # Unlimited kernel memory. Watches are limited per user, so the instructor's programs could run
    # out of them.
    "inotify_init": (253, 26),  # ARM has only the next one
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    "timer_create": (222, 107),
    "listen": (50, 201),
    "landlock_create_ruleset": (444, 444),
    # Bytes stored outside files: extended attributes, and files in transit with a message.
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    # Writes that don't count as writes.
    "splice": (275, 76),
    "tee": (276, 77),
    "vmsplice": (278, 75),
    "io_setup": (206, 0),
    # Use of other submissions' processors.
    "sched_setaffinity": (203, 122),
    # Access to other processes, and to the host.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "perf_event_open": (298, 241),
    "syslog": (103, 116),
    # Limits, which the grader lowers from outside for a measured call, then raises again.
    "setrlimit": (160, 164),
    # Keyrings, which outlive a process.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Namespaces and mounts.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    # Large attack surfaces of the kernel.
    "bpf": (321, 280),
    "seccomp": (317, 277),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    # Its flags are in memory, which no filter can read. C libraries fall back to clone.
    "clone3": (435, 435),
}
_SOCKET, _CLONE, _PRCTL, _MMAP, _MADVISE = (41, 198), (56, 220), (157, 167), (9, 222), (28, 233)
_PRLIMIT64, _FCNTL, _SETSOCKOPT = (302, 261), (72, 25), (54, 208)
_MREMAP = (25, 216)
_CLOSE_RANGE = (436, 436)
_FLOCK = (73, 32)
_NEWEST = 452  # fchmodat2 (kernel 6.6); calls with higher numbers are refused
_LINKS = ((88, 36), (266, 36))  # symlink, which ARM lacks, and symlinkat
_FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6: families that a network namespace isolates
_NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW... flag
_NO_CHILD = 0x8000  # CLONE_PARENT: a process outside the student's process tree
_THREAD, _SAME_FILES = 0x10000, 0x400  # CLONE_THREAD, CLONE_FILES
_FILES_OF_ITS_OWN = 2  # CLOSE_RANGE_UNSHARE
_SHARED_BY_NO_FILE, _HUGE_PAGES = 0x21, 0x40000  # MAP_SHARED | MAP_ANONYMOUS, MAP_HUGETLB
_STACK = 0x100  # MAP_GROWSDOWN: RLIMIT_DATA doesn't count it
STACK_BYTES = 2**23  # the most that the main thread's stack may take
_MAY_MOVE = 1  # MREMAP_MAYMOVE, all that malloc asks for
_LOCKS = (6, 7, 37, 38)  # F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW: one lock per two bytes
_LEASE, _NOTIFY, _PIPE_SIZE = 1024, 1026, 1031  # F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ
_SOCKET_SIZES = (7, 8)  # SO_SNDBUF, SO_RCVBUF
_SOCKET_FILTERS = (26, 50, 51, 52)  # SO_ATTACH_FILTER, ..._BPF, ..._REUSEPORT_CBPF, ..._EBPF
# The socket options that create no tables in the kernel and change no protocol: SO_REUSEADDR,
# SO_KEEPALIVE, SO_LINGER, SO_RCVTIMEO, SO_SNDTIMEO (with numbers of their own for long times);
# TCP_NODELAY.
_AF_UNIX, _AF_INET, _AF_NETLINK = 1, 2, 16
_SOCK_STREAM, _SOCK_DGRAM, _SOCK_KINDS, _TCP, _ROUTE = 1, 2, 0xF, 6, 0
_PLAIN_OPTIONS = {1: (2, 9, 13, 20, 21, 66, 67), _TCP: (1,)}
_TO_SWAP = (20, 21)  # MADV_COLD, MADV_PAGEOUT
# The properties of itself that a process may read or set: name, capabilities, the signal when its
# parent dies, timer slack, huge pages, vector length, filters such as this one. The others would
# hide or forge its memory, name mappings (80 bytes each that nothing counts), or make the kernel
# build a table of any size.
# fmt: off
_PROPERTIES = (
    1, 2, 3, 7, 14, 15, 16, 21, 22, 23, 27, 29,
    30, 36, 37, 38, 39, 40, 41, 42, 47, 50, 51,
)
# fmt: on

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, AUDIT_ARCH_...
_X32 = 0x40000000  # the bit of the x86-64 calls that have another table

# Classic BPF, with the names of <linux/filter.h> and <linux/seccomp.h>.
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2

Step = tuple[int, int, int, int]  # code, steps over if true, steps over if false, operand
_PASS: Step = (_RETURN, 0, 0, _ALLOW)
_REFUSAL: Step = (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)
_AS_IF_DONE: Step = (_RETURN, 0, 0, _ERRNO)  # the call returns 0 and does nothing


def refuse_system_calls(*, gpu: bool, ranks: bool) -> None:
    """Make the kernel refuse these calls to this process and everything it starts, for good.

    The calls fail as on a kernel without them, except that `flock` succeeds without locking
    anything. With a `gpu`, memory that belongs to no process and shared anonymous memory are
    allowed, because CUDA's libraries need them. With `ranks`, processes may lock files and wait for
    connections, but create only plain sockets and set few of their options. Raises OSError if the
    processor is unknown or the kernel takes no filter. Set no-new-privileges before the call.
    """
    filter_system_calls(partial(_filter, gpu=gpu, ranks=ranks))
    if ranks:
        filter_system_calls(_plain_sockets)


def refuse_links() -> None:
    """Make the kernel refuse symbolic links, whose targets hold bytes that no limit counts."""
    filter_system_calls(_no_links)


def filter_system_calls(steps_of: Callable[[int, int], Iterator[Step]]) -> None:
    """Install a filter in the kernel, for good; see `refuse_system_calls`."""
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        known = ", ".join(_ARCHITECTURES)
        raise OSError(errno.ENOSYS, f"no list of system calls for {machine}, only for {known}")
    program, _code = program_of(list(steps_of(*_ARCHITECTURES[machine])))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_SECCOMP) failed")


def program_of(steps: Sequence[Step]) -> tuple[bytes, ctypes.Array[ctypes.c_char]]:
    """Return the filter in the kernel's format, and the code that it points to; keep both alive."""
    packed = b"".join(struct.pack("HBBI", *step) for step in steps)
    code = ctypes.create_string_buffer(packed, len(packed))
    return struct.pack("HP", len(steps), ctypes.addressof(code)), code


def _filter(column: int, architecture: int, *, gpu: bool, ranks: bool = False) -> Iterator[Step]:
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield _EQUAL, 1, 0, architecture
    yield _RETURN, 0, 0, _KILL  # 32-bit calls
    yield _LOAD, 0, 0, _NUMBER
    yield _AT_LEAST, 0, 1, _X32
    yield _REFUSAL
    yield _AT_LEAST, 0, 1, _NEWEST + 1
    yield _REFUSAL
    for name, numbers in REFUSED.items():
        if (gpu and name == "memfd_create") or (ranks and name == "listen"):
            continue
        yield _EQUAL, 0, 1, numbers[column]
        yield _REFUSAL
    if not ranks:  # ranks find each other through a file
        # Files, and so their locks, are shared with other submissions and the machine's programs.
        yield _EQUAL, 0, 1, _FLOCK[column]
        yield _AS_IF_DONE
    families = [(_EQUAL, family) for family in (*_FAMILIES, *([_AF_NETLINK] if ranks else []))]
    yield from _by_argument(_SOCKET[column], 0, families, held=_PASS, else_=_REFUSAL)
    properties = [(_EQUAL, option) for option in _PROPERTIES]
    yield from _by_argument(_PRCTL[column], 0, properties, held=_PASS, else_=_REFUSAL)
    # /proc/PID/fd doesn't list the files of a thread with its own table of open files.
    unlike = [(_ANY_BIT, _NEW_NAMESPACES | _NO_CHILD), (_EQUAL, _THREAD)]
    mask = _NEW_NAMESPACES | _NO_CHILD | _THREAD | _SAME_FILES
    yield from _by_argument(_CLONE[column], 0, unlike, held=_REFUSAL, else_=_PASS, mask=mask)
    apart = [(_ANY_BIT, _FILES_OF_ITS_OWN)]
    yield from _by_argument(_CLOSE_RANGE[column], 2, apart, held=_REFUSAL, else_=_PASS)
    unseen = [(_ANY_BIT, _HUGE_PAGES | _STACK)]
    if not gpu:
        unseen.append((_EQUAL, _SHARED_BY_NO_FILE))
    mask = _SHARED_BY_NO_FILE | _HUGE_PAGES | _STACK
    yield from _by_argument(_MMAP[column], 3, unseen, held=_REFUSAL, else_=_PASS, mask=mask)
    yield from _not_the_stack(_MREMAP[column], (stack_begins() or 2**63) - STACK_BYTES)
    to_swap = [(_EQUAL, advice) for advice in _TO_SWAP]
    yield from _by_argument(_MADVISE[column], 2, to_swap, held=_REFUSAL, else_=_PASS)
    held = [(_EQUAL, command) for command in (*_LOCKS, _LEASE, _NOTIFY, _PIPE_SIZE)]
    yield from _by_argument(_FCNTL[column], 1, held, held=_REFUSAL, else_=_PASS)
    kept = [(_EQUAL, option) for option in (*_SOCKET_SIZES, *_SOCKET_FILTERS)]
    yield from _by_argument(_SETSOCKOPT[column], 2, kept, held=_REFUSAL, else_=_PASS)
    yield from _only_asking_limits(_PRLIMIT64[column])
    yield _PASS


def _no_links(column: int, _architecture: int) -> Iterator[Step]:
    yield _LOAD, 0, 0, _NUMBER
    for numbers in _LINKS:
        yield _EQUAL, 0, 1, numbers[column]
        yield _REFUSAL
    yield _PASS


def _plain_sockets(column: int, _architecture: int) -> Iterator[Step]:
    """Allow only the sockets that ranks need, on an interface that is up."""
    yield _LOAD, 0, 0, _NUMBER
    for number, steps in ((_SOCKET, _a_plain_socket()), (_SETSOCKOPT, _a_plain_option())):
        body = list(steps)
        yield _EQUAL, 0, len(body), number[column]
        yield from body
    yield _PASS


def _a_plain_socket() -> Iterator[Step]:
    family, kind, protocol = (_ARGUMENTS + 8 * argument for argument in range(3))
    yield _LOAD, 0, 0, family
    yield _EQUAL, 0, 1, _AF_UNIX
    yield _PASS
    interfaces = list(_one_of(protocol, (_ROUTE,)))  # gloo asks them for interface names
    yield _EQUAL, 0, len(interfaces), _AF_NETLINK
    yield from interfaces
    yield _EQUAL, 1, 0, _AF_INET
    yield _REFUSAL
    yield _LOAD, 0, 0, kind
    yield _AND, 0, 0, _SOCK_KINDS
    yield _EQUAL, 2, 0, _SOCK_STREAM
    yield _EQUAL, 1, 0, _SOCK_DGRAM  # gloo asks one for the interface's speed
    yield _REFUSAL
    yield from _one_of(protocol, (0, _TCP))


def _a_plain_option() -> Iterator[Step]:
    for level, options in _PLAIN_OPTIONS.items():
        yield _LOAD, 0, 0, _ARGUMENTS + 8
        steps = list(_one_of(_ARGUMENTS + 8 * 2, options))
        yield _EQUAL, 0, len(steps), level
        yield from steps
    yield _REFUSAL


def _one_of(place: int, values: Sequence[int]) -> Iterator[Step]:
    yield _LOAD, 0, 0, place
    for value in values:
        yield _EQUAL, 0, 1, value
        yield _PASS
    yield _REFUSAL


def _only_asking_limits(number: int) -> Iterator[Step]:
    """Refuse to set a limit, recognised by a non-null pointer to the new limit."""
    yield _EQUAL, 0, 6, number
    yield _LOAD, 0, 0, _ARGUMENTS + 8 * 2
    yield _EQUAL, 0, 3, 0
    yield _LOAD, 0, 0, _ARGUMENTS + 8 * 2 + 4
    yield _EQUAL, 0, 1, 0
    yield _PASS
    yield _REFUSAL


def stack_begins() -> int | None:
    """Return the address from which the main thread's stack grows down; None if unknown."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("[stack]"):
            return int(line.split()[0].partition("-")[2], 16)
    return None


def _not_the_stack(number: int, lowest: int) -> Iterator[Step]:
    """Refuse `mremap` at or above `lowest`, or with flags that malloc doesn't use.

    An enlarged piece of the stack stays stack, which RLIMIT_DATA doesn't count.
    """
    high, low = lowest >> 32, lowest & 0xFFFFFFFF
    yield _EQUAL, 0, 9, number
    yield _LOAD, 0, 0, _ARGUMENTS + 8 * 3
    yield _ANY_BIT, 6, 0, 0xFFFFFFFF - _MAY_MOVE
    yield _LOAD, 0, 0, _ARGUMENTS + 4
    yield _EQUAL, 1, 0, high
    yield _AT_LEAST, 3, 2, high
    yield _LOAD, 0, 0, _ARGUMENTS
    yield _AT_LEAST, 1, 0, low
    yield _PASS
    yield _REFUSAL


def _by_argument(
    number: int,
    argument: int,
    tests: Sequence[tuple[int, int]],
    *,
    held: Step,
    else_: Step,
    mask: int = 0xFFFFFFFF,
) -> Iterator[Step]:
    """Decide on a call by the masked bits of one argument; other calls go on to later steps."""
    yield _EQUAL, 0, len(tests) + 4, number
    yield _LOAD, 0, 0, _ARGUMENTS + 8 * argument
    yield _AND, 0, 0, mask
    for after, (code, operand) in zip(reversed(range(len(tests))), tests, strict=True):
        yield code, after + 1, 0, operand
    yield else_
    yield held
