"""Decides whether a student's processes may change memory protection or create sockets.

The limits of a memory budget count only memory that can be written to. Without this module, a
measured call could fill memory, make it read-only and continue with its whole budget, or store
bytes in sockets. See docs/decisions/memory_budgets.md.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import select
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from autograder.sandbox.guest.listener import OVERSEEN

__all__ = ["MOST_CHANGES", "SHUT_BYTES", "Overseer", "measuring"]

#: Bytes that a measured call may make read-only; generated code needs some.
SHUT_BYTES = 2**20
#: Such calls allowed in one process's life; solved labs need under 200.
MOST_CHANGES = 20_000

_WRITE = 2  # PROT_WRITE
# struct seccomp_notif: id, pid, flags; nr, arch, instruction pointer, six arguments
_ASKED = struct.Struct("=QII iIQ 6Q")
_REPLY = struct.Struct("=QqiI")  # struct seccomp_notif_resp: id, val, error, flags
_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV, _SEND
_GO_ON = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE


class Overseer:
    """Lets a process and its descendants make the `OVERSEEN` calls, within bounds while measured.

    `listener` is the descriptor from `hand_over_listener`, which `close` closes. Processes that ask
    too often would keep the grader busy without being charged, so they are ended with `kill`.
    """

    def __init__(self, listener: int, kill: Callable[[], None]) -> None:
        self._listener = listener
        self._kill = kill
        self._decided = 0
        self._left: int | None = None
        self._sockets = True
        self._ending = os.eventfd(0)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def bound(self, read_only_bytes: int | None, *, sockets: bool = True) -> None:
        """From here on, let the processes make at most this much read-only; None means any amount.

        `sockets` tells whether they may create sockets.
        """
        self._left, self._sockets = read_only_bytes, sockets

    def close(self) -> None:
        """Stop deciding; every further request is refused."""
        os.eventfd_write(self._ending, 1)
        self._thread.join()
        os.close(self._ending)
        os.close(self._listener)

    def _serve(self) -> None:
        waiting = select.poll()
        waiting.register(self._listener, select.POLLIN)
        waiting.register(self._ending, select.POLLIN)
        while True:
            ready = dict(waiting.poll())
            if self._ending in ready:
                return
            if not ready[self._listener] & select.POLLIN:
                waiting.unregister(self._listener)  # all processes have ended
                continue
            self._decided += 1
            if self._decided > MOST_CHANGES:
                self._kill()
                return
            self._decide()

    def _decide(self) -> None:
        asked = bytearray(_ASKED.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, asked)
            number, _, _, call, _, _, _address, length, rights, *_ = _ASKED.unpack(asked)
            error = 0 if self._allows(call, length, rights) else -errno.ENOMEM
            flags = 0 if error else _GO_ON
            fcntl.ioctl(self._listener, _SEND, _REPLY.pack(number, 0, error, flags))
        except FileNotFoundError:
            return  # the process has ended meanwhile

    def _allows(self, call: int, length: int, rights: int) -> bool:
        if call != OVERSEEN[os.uname().machine][0]:
            return self._sockets
        if self._left is None or rights & _WRITE:
            return True
        whole = -(-length // mmap.PAGESIZE) * mmap.PAGESIZE  # the kernel changes whole pages
        self._left -= min(whole, self._left + 1)
        return self._left >= 0


@contextmanager
def measuring(overseer: Overseer | None, processes: int = 1) -> Iterator[None]:
    """Bound what this many processes may make read-only in the block, if there is an overseer.

    Only several processes, which are ranks, may create sockets.
    """
    if overseer is None:
        yield
        return
    overseer.bound(processes * SHUT_BYTES, sockets=processes > 1)
    try:
        yield
    finally:
        overseer.bound(None)
