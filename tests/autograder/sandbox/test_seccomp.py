"""The filter of system calls: its numbers against the kernel's own, and the calls it allows."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from autograder.sandbox.guest import seccomp

HEADERS = (
    Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    Path("/usr/include/asm-generic/unistd.h"),
)
NUMBERS = {
    **seccomp.REFUSED,
    "socket": seccomp._SOCKET,
    "clone": seccomp._CLONE,
    "prctl": seccomp._PRCTL,
    "mmap": seccomp._MMAP,
    "madvise": seccomp._MADVISE,
    "mremap": seccomp._MREMAP,
    "prlimit64": seccomp._PRLIMIT64,
    "fcntl": seccomp._FCNTL,
    "close_range": seccomp._CLOSE_RANGE,
    "flock": seccomp._FLOCK,
    "setsockopt": seccomp._SETSOCKOPT,
    "symlinkat": seccomp._LINKS[1],
}
ALLOW, REFUSE, KILL = seccomp._ALLOW, seccomp._ERRNO | 38, seccomp._KILL
AS_IF_DONE = seccomp._ERRNO | 0
ARCHITECTURES = list(seccomp._ARCHITECTURES.values())


@pytest.mark.parametrize("column", [0, 1], ids=["x86-64", "arm"])
def test_numbers_are_those_of_the_kernels_headers(column):
    header = HEADERS[column]
    if not header.exists():
        pytest.skip(f"needs {header}; on Debian: apt-get install linux-libc-dev")
    text = header.read_text()
    found = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text))
    known = {name: own[column] for name, own in NUMBERS.items() if name in found}
    assert set(NUMBERS) - set(known) <= {"inotify_init", "symlink"}  # which ARM lacks
    assert known == {name: int(found[name]) for name in known}


def run(
    steps: Iterable[tuple[int, int, int, int]],
    number: int,
    argument: int,
    arch: int,
    place: int = 0,
    *further: int,
) -> int:
    """The verdict of the kernel's little machine on one call; `place` is the argument's, from 0 on.

    `further` arguments come after it.
    """
    program, at, register = list(steps), 0, 0
    data = {0: number, 4: arch, **dict.fromkeys(range(16, 64, 4), 0)}
    for here, value in enumerate((argument, *further), place):
        data |= {16 + 8 * here: value % 2**32, 20 + 8 * here: value // 2**32}
    while True:
        code, yes, no, operand = program[at]
        at += 1
        if code == 0x06:
            return operand
        if code == 0x20:
            register = data[operand]
            continue
        if code == 0x54:
            register &= operand
            continue
        holds = {
            0x15: register == operand,
            0x35: register >= operand,
            0x45: bool(register & operand),
        }[code]
        at += yes if holds else no


@pytest.mark.parametrize(("column", "arch"), ARCHITECTURES)
def test_the_filter_refuses_its_calls_and_no_others(column, arch):
    steps = list(seccomp._filter(column, arch, gpu=False))
    refused = {own[column] for own in seccomp.REFUSED.values()}
    special = {seccomp._SOCKET[column], seccomp._CLONE[column], seccomp._PRCTL[column]}
    for number in set(range(500)) - special:
        expected = REFUSE if number in refused or number > 452 else ALLOW  # 452 is fchmodat2
        if number == seccomp._FLOCK[column]:
            expected = AS_IF_DONE
        assert run(steps, number, 0, arch) == expected
    for family in range(46):
        expected = ALLOW if family in {1, 2, 10} else REFUSE
        assert run(steps, seccomp._SOCKET[column], family, arch) == expected


@pytest.mark.parametrize(("column", "arch"), ARCHITECTURES)
def test_a_process_may_name_itself_but_not_hide_its_memory_nor_have_tables_made(column, arch):
    steps, prctl = list(seccomp._filter(column, arch, gpu=False)), seccomp._PRCTL[column]
    names = [15, 16]  # PR_SET_NAME, PR_GET_NAME
    assert [run(steps, prctl, option, arch) for option in names] == [ALLOW] * len(names)
    # PR_SET_DUMPABLE, PR_SET_MM, PR_FUTEX_HASH, PR_SET_VMA, and what a later kernel may add
    for option in (4, 35, 78, *range(79, 200), 0x53564D41, 0x59616D61):
        assert run(steps, prctl, option, arch) == REFUSE


@pytest.mark.parametrize(("column", "arch"), ARCHITECTURES)
def test_clone_makes_threads_and_processes_but_no_namespaces(column, arch):
    steps, clone = list(seccomp._filter(column, arch, gpu=False)), seccomp._CLONE[column]
    sigchld, thread = 17, 0x3D0F00  # as C libraries ask for a process and for a thread
    assert [run(steps, clone, flags, arch) for flags in (sigchld, thread)] == [ALLOW, ALLOW]
    files = 0x400  # CLONE_FILES: without it, a thread's open files would be its own
    assert run(steps, clone, thread & ~files, arch) == REFUSE
    parent = 0x8000  # the child would have none of the student's parents
    for flag in (
        parent,
        0x20000,
        0x2000000,
        0x4000000,
        0x8000000,
        0x10000000,
        0x20000000,
        0x40000000,
    ):
        assert run(steps, clone, flag | sigchld, arch) == REFUSE


@pytest.mark.parametrize(("column", "arch"), ARCHITECTURES)
def test_all_threads_of_a_process_have_the_same_open_files(column, arch):
    steps, close = list(seccomp._filter(column, arch, gpu=False)), seccomp._CLOSE_RANGE[column]
    unshare, on_exec = 2, 4  # CLOSE_RANGE_UNSHARE, CLOSE_RANGE_CLOEXEC
    assert [run(steps, close, flags, arch, place=2) for flags in (0, on_exec)] == [ALLOW, ALLOW]
    for flags in (unshare, unshare | on_exec):
        assert run(steps, close, flags, arch, place=2) == REFUSE


@pytest.mark.parametrize(("column", "arch"), ARCHITECTURES)
def test_memory_is_shared_through_files_only(column, arch):
    steps, mmap = list(seccomp._filter(column, arch, gpu=False)), seccomp._MMAP[column]
    shared, private, anonymous, huge, no_reserve = 1, 2, 0x20, 0x40000, 0x4000
    stack = 0x100  # MAP_GROWSDOWN
    for flags in (private, shared, private | anonymous, private | anonymous | no_reserve):
        assert run(steps, mmap, flags, arch, place=3) == ALLOW
    stacks = (private | anonymous | stack, shared | anonymous | stack)
    huge_pages = (private | anonymous | huge, shared | huge)
    for flags in (shared | anonymous, 3 | anonymous, *huge_pages, *stacks):
        assert run(steps, mmap, flags, arch, place=3) == REFUSE


@pytest.mark.parametrize(("column", "arch"), ARCHITECTURES)
def test_where_there_is_a_gpu_memory_may_be_shared_and_nothing_else_changes(column, arch):
    steps = list(seccomp._filter(column, arch, gpu=True))
    strict = list(seccomp._filter(column, arch, gpu=False))
    memfd, mmap = seccomp.REFUSED["memfd_create"][column], seccomp._MMAP[column]
    for number in set(range(500)) - {memfd}:
        assert run(steps, number, 0, arch) == run(strict, number, 0, arch)
    assert run(steps, memfd, 0, arch) == ALLOW
    shared_anonymous, huge = 0x21, 0x40022
    assert run(steps, mmap, shared_anonymous, arch, place=3) == ALLOW
    assert run(steps, mmap, huge, arch, place=3) == REFUSE


@pytest.mark.parametrize(("column", "arch"), ARCHITECTURES)
def test_memory_is_given_back_but_not_sent_to_swap(column, arch):
    steps, madvise = list(seccomp._filter(column, arch, gpu=False)), seccomp._MADVISE[column]
    for advice in range(26):  # MADV_COLD is 20, MADV_PAGEOUT is 21
        expected = REFUSE if advice in {20, 21} else ALLOW
        assert run(steps, madvise, advice, arch, place=2) == expected


@pytest.mark.parametrize(("column", "arch"), ARCHITECTURES)
def test_limits_may_be_asked_for_but_not_set(column, arch):
    steps = list(seccomp._filter(column, arch, gpu=False))
    assert run(steps, seccomp.REFUSED["setrlimit"][column], 0, arch) == REFUSE
    asked = seccomp._PRLIMIT64[column]
    assert run(steps, asked, 0, arch, place=2) == ALLOW
    assert run(steps, asked, 1, arch, place=3) == ALLOW  # where the old limits go
    for pointer in (1, 2**31, 2**32, 2**47, 2**64 - 2**32):  # in either half
        assert run(steps, asked, pointer, arch, place=2) == REFUSE


@pytest.mark.parametrize(("column", "arch"), ARCHITECTURES)
def test_files_get_no_locks_and_pipes_and_sockets_hold_what_they_hold_at_first(column, arch):
    steps = list(seccomp._filter(column, arch, gpu=False))
    # F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ
    refused = {6, 7, 37, 38, 1024, 1026, 1031}
    for command in range(1100):
        expected = REFUSE if command in refused else ALLOW
        assert run(steps, seccomp._FCNTL[column], command, arch, place=1) == expected
    refused = {7, 8, 26, 50, 51, 52}  # SO_SNDBUF, SO_RCVBUF, SO_ATTACH_...
    for option in range(80):
        expected = REFUSE if option in refused else ALLOW
        assert run(steps, seccomp._SETSOCKOPT[column], option, arch, place=2) == expected


@pytest.mark.parametrize("column", [0, 1])
def test_a_second_filter_refuses_symbolic_links_and_nothing_else(column):
    refused = {numbers[column] for numbers in seccomp._LINKS}
    for number in range(500):
        found = run(seccomp._no_links(column, 0), number, 0, 0)
        assert found == (REFUSE if number in refused else ALLOW)


@pytest.mark.parametrize(("column", "arch"), ARCHITECTURES)
def test_for_ranks_processes_may_wait_for_connections_and_nothing_else_changes(column, arch):
    steps = list(seccomp._filter(column, arch, gpu=False, ranks=True))
    strict = list(seccomp._filter(column, arch, gpu=False))
    listen, flock = seccomp.REFUSED["listen"][column], seccomp._FLOCK[column]
    socket = seccomp._SOCKET[column]
    assert (run(strict, listen, 3, arch), run(steps, listen, 3, arch)) == (REFUSE, ALLOW)
    assert (run(strict, flock, 3, arch), run(steps, flock, 3, arch)) == (AS_IF_DONE, ALLOW)
    for number in set(range(500)) - {listen, flock}:
        assert run(steps, number, 0, arch) == run(strict, number, 0, arch)
    changed = [n for n in range(46) if run(steps, socket, n, arch) != run(strict, socket, n, arch)]
    assert changed == [16]  # AF_NETLINK


UNIX, INET, INET6, NETLINK, STREAM, DATAGRAM, RAW = 1, 2, 10, 16, 1, 2, 3
CLOSE_ON_EXEC, TCP, MULTIPATH, GENERIC = 0o2000000, 6, 262, 16


@pytest.mark.parametrize("column", [0, 1])
def test_for_ranks_a_third_filter_lets_plain_sockets_be_and_few_of_their_options(column):
    steps = list(seccomp._plain_sockets(column, 0))

    def made(*arguments: int) -> bool:
        return run(steps, seccomp._SOCKET[column], arguments[0], 0, 0, *arguments[1:]) == ALLOW

    def set_(level: int, option: int) -> bool:
        return run(steps, seccomp._SETSOCKOPT[column], 3, 0, 0, level, option) == ALLOW

    assert made(UNIX, DATAGRAM, 0)
    assert made(INET, STREAM, 0)
    assert made(INET, STREAM | CLOSE_ON_EXEC, TCP)
    assert made(INET, DATAGRAM, 0)
    assert made(NETLINK, RAW | CLOSE_ON_EXEC, 0)
    assert not any(made(INET6, kind, 0) for kind in range(1, 11))
    assert not any(made(INET, kind, 0) for kind in range(3, 11))
    assert not any(made(INET, STREAM, protocol) for protocol in (1, 132, MULTIPATH))
    assert not any(made(NETLINK, RAW, protocol) for protocol in range(1, 32))
    # SO_REUSEADDR, SO_KEEPALIVE, SO_LINGER, SO_RCVTIMEO and SO_SNDTIMEO, TCP_NODELAY
    allowed = {(1, 2), (1, 9), (1, 13), (1, 20), (1, 21), (1, 66), (1, 67), (6, 1)}
    levels_and_options = [
        (level, option) for level in (0, 1, 2, 6, 17, 41, 270) for option in range(80)
    ]
    assert {pair for pair in levels_and_options if set_(*pair)} == allowed
    special = {seccomp._SOCKET[column], seccomp._SETSOCKOPT[column]}
    assert all(run(steps, number, 0, 0) == ALLOW for number in set(range(500)) - special)


def test_other_tables_of_calls_are_closed():
    column, arch = seccomp._ARCHITECTURES["x86_64"]
    steps = list(seccomp._filter(column, arch, gpu=False))
    assert run(steps, 0, 0, 0x40000003) == KILL  # 32-bit x86
    assert run(steps, 0x40000000 + 319, 0, arch) == REFUSE


@pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")
def test_an_unknown_processor_gets_no_filter_that_lets_all_through(monkeypatch):
    machine = type("Name", (), {"machine": "riscv64"})
    monkeypatch.setattr(seccomp.os, "uname", lambda: machine)
    with pytest.raises(OSError, match="riscv64"):
        seccomp.refuse_system_calls(gpu=False, ranks=False)


@pytest.mark.parametrize(("column", "arch"), ARCHITECTURES)
def test_only_mallocs_way_of_enlarging_a_mapping_is_left_and_none_for_the_stack(column, arch):
    steps = list(seccomp._not_the_stack(seccomp._MREMAP[column], 0x7FFD_1234_5000))
    steps = [(0x20, 0, 0, 0), *steps, (0x06, 0, 0, ALLOW)]

    def verdict(place: int, flags: int = 1) -> int:
        return run(steps, seccomp._MREMAP[column], place, arch, 0, 4096, 8192, flags)

    assert verdict(0x7FFD_1234_4000) == verdict(0x7FFC_FFFF_F000) == ALLOW
    assert verdict(0x5555_0000_0000, flags=0) == ALLOW
    assert verdict(0x7FFD_1234_5000) == verdict(0x7FFE_0000_0000) == REFUSE
    assert verdict(0x5555_0000_0000, flags=3) == verdict(0x5555_0000_0000, flags=5) == REFUSE
    assert run(steps, seccomp._MMAP[column], 0x7FFD_1234_5000, arch) == ALLOW
