"""Asks the grader, through a kernel filter, about memory-protection changes and new sockets.

Limits count only memory that can be written to, so a process could fill memory and make it
read-only to escape them. Sockets hold bytes that no limit counts. The kernel suspends such calls
until the owner of the listener decides.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket

from autograder.sandbox.guest.seccomp import program_of

__all__ = ["LISTENER", "NO_LISTENER", "OVERSEEN", "hand_over_listener"]

#: The byte sent along with the listener's descriptor, and the byte that means there is none.
LISTENER, NO_LISTENER = b"L", b"-"
#: The numbers of the calls that the grader decides on: mprotect, then socket and socketpair.
OVERSEEN = {"x86_64": (10, 41, 53), "aarch64": (226, 198, 199)}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_NUMBER = 0  # offset in struct seccomp_data


def hand_over_listener(connection: socket.socket) -> None:
    """Have the kernel ask the other end of a connection about each `OVERSEEN` call, for good.

    The listener's descriptor is sent, then closed here. If the kernel refuses, only a byte is sent.
    Call this before `refuse_system_calls`, after setting no-new-privileges.
    """
    try:
        listener = _listener()
    except OSError:
        connection.sendall(NO_LISTENER)
        return
    socket.send_fds(connection, [LISTENER], [listener])
    os.close(listener)


def _listener() -> int:
    machine = os.uname().machine
    if machine not in OVERSEEN:
        raise OSError(errno.ENOSYS, f"no system call numbers for {machine}")
    steps = [(_LOAD, 0, 0, _NUMBER)]
    for call in OVERSEEN[machine]:
        steps += [(_EQUAL, 0, 1, call), (_RETURN, 0, 0, _NOTIFY)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    program, _code = program_of(steps)
    libc = ctypes.CDLL(None, use_errno=True)
    listener: int = libc.syscall(_SECCOMP[machine], _SET_MODE_FILTER, _NEW_LISTENER, program)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp(SECCOMP_SET_MODE_FILTER) failed")
    return listener
