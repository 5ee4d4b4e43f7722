"""Wire: one message of plain data at a time over a stream socket, with a bound on its size."""

from __future__ import annotations

import socket
import struct
from typing import Any

from peakmem import plain

__all__ = ["MAX_MESSAGE", "ConnectionClosed", "WireError", "receive", "send"]

MAX_MESSAGE = 32 * 2**20  # bytes of one message
_LENGTH = struct.Struct(">Q")


class WireError(ConnectionError):
    """What the other side sends is no message."""


class ConnectionClosed(WireError):
    """The other side has gone."""


def send(connection: socket.socket, message: Any) -> None:
    """Send plain data; PlainError where it is none, or would be over MAX_MESSAGE bytes."""
    data = plain.encode(message)
    if len(data) > MAX_MESSAGE:
        raise plain.PlainError(
            f"an answer of {len(data):,} bytes is too large; at most {MAX_MESSAGE:,} are taken"
        )
    try:
        connection.sendall(_LENGTH.pack(len(data)) + data)
    except OSError as error:
        raise ConnectionClosed(str(error)) from None


def receive(connection: socket.socket) -> Any:
    """Return the next message. A length over MAX_MESSAGE is refused before a byte of it is read.

    Raises WireError, and TimeoutError where the socket's timeout passes.
    """
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    if length > MAX_MESSAGE:
        raise WireError(f"a message of {length:,} bytes; at most {MAX_MESSAGE:,} are taken")
    try:
        return plain.decode(_exactly(connection, length))
    except plain.PlainError as error:
        raise WireError(str(error)) from None


def _exactly(connection: socket.socket, count: int) -> bytes:
    chunks = bytearray()
    while len(chunks) < count:
        try:
            chunk = connection.recv(min(count - len(chunks), 2**20))
        except TimeoutError:
            raise
        except OSError as error:
            raise ConnectionClosed(str(error)) from None
        if not chunk:
            raise ConnectionClosed("the other side has gone")
        chunks += chunk
    return bytes(chunks)
