"""Opens a network for the ranks of one submission: its own loopback interface, bounded.

Linux only, in the submission's own network namespace.
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
_BUFFER = 2**16  # bytes per connection and direction; with half of this, ranks take longer
_LEAST = 4096
_WAITING = 8  # connections waiting to be accepted on one socket: enough for 9 ranks
_CLOSED = 1024  # closed connections that the kernel remembers for a minute


def open_loopback() -> None:
    """Bring the loopback interface up, with bounds on the buffers of its connections.

    By default buffers grow to 10 MiB, more than the memory watch counts for a socket. Needs this
    namespace's /proc to be writable. Raises OSError if the kernel refuses.
    """
    for direction in ("rmem", "wmem"):
        (_SYSTEM / f"ipv4/tcp_{direction}").write_text(f"{_LEAST} {_BUFFER} {_BUFFER}")
    (_SYSTEM / "ipv4/tcp_max_tw_buckets").write_text(str(_CLOSED))
    with suppress(OSError):  # not per namespace in older kernels; the watch counts these
        (_SYSTEM / "core/somaxconn").write_text(str(_WAITING))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))
