"""A network for the ranks of one submission: its own loopback interface, up and bounded.

Linux only, in a network namespace of the submission's own, which nothing else is in.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from contextlib import suppress
from pathlib import Path

__all__ = ["open_loopback"]

_SET_FLAGS, _UP = 0x8914, 1  # SIOCSIFFLAGS, IFF_UP
_SYSTEM = Path("/proc/sys/net")
_BUFFER = 2**16  # bytes of a connection each way; with half of it, ranks take longer
_LEAST = 4096
_WAITING = 8  # connections of one socket that wait to be accepted: those of a world of 9 ranks
_CLOSED = 1024  # connections that the kernel remembers for a minute after their end


def open_loopback() -> None:
    """Bring the loopback interface up, with bounds on what its connections hold.

    By themselves their buffers grow to 10 MiB, more than the watch over memory counts for a socket.
    Takes /proc of this namespace, writable. Raises OSError where the kernel refuses.
    """
    for direction in ("rmem", "wmem"):
        (_SYSTEM / f"ipv4/tcp_{direction}").write_text(f"{_LEAST} {_BUFFER} {_BUFFER}")
    (_SYSTEM / "ipv4/tcp_max_tw_buckets").write_text(str(_CLOSED))
    with suppress(OSError):  # older kernels keep it from namespaces; the watch counts who waits
        (_SYSTEM / "core/somaxconn").write_text(str(_WAITING))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))
