"""Sends bounded messages of plain data over a stream socket."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

from peakmem.core import serialization

__all__ = [
    "MAX_MESSAGE",
    "ConnectionClosed",
    "MessageTooLong",
    "WireError",
    "decode",
    "receive",
    "send",
    "take",
]

MAX_MESSAGE = 16 * 2**20  # bytes of one message
_MAX_CONTAINERS = (
    400_000  # lists and dicts in one message; small ones take much memory but few bytes
)
_LENGTH = struct.Struct(">Q")


class WireError(ConnectionError):
    """The other side sent something that isn't a message."""


class ConnectionClosed(WireError):
    """The other side closed the connection."""


class MessageTooLong(WireError):
    """The other side announced a message that is too long."""


def send(connection: socket.socket, message: Any, look: Callable[[], None] | None = None) -> None:
    """Send plain data.

    Raises PlainError if it isn't plain, or longer than MAX_MESSAGE bytes, and ConnectionClosed if
    the other side no longer reads.

    While waiting for a slow reader, this calls `look` as `take` does; it raises to give up.
    """
    data = serialization.encode(message)
    if len(data) > MAX_MESSAGE:
        raise serialization.PlainError(
            f"an answer of {len(data):,} bytes is too large; at most {MAX_MESSAGE:,} are taken"
        )
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:
        try:
            left = left[connection.send(left) :]
        except OSError as error:
            if look is None or not isinstance(error, TimeoutError):
                raise ConnectionClosed(str(error)) from None
        if look is not None:
            look()


def receive(connection: socket.socket) -> Any:
    """Return the next message. Raises what `take` and `decode` raise."""
    return decode(take(connection))


def take(
    connection: socket.socket,
    at_most: int = MAX_MESSAGE,
    look: Callable[[], None] | None = None,
) -> bytearray:
    """Return the next message's bytes. A length over `at_most` is refused before reading on.

    Calls `look` after each piece received and after each timeout of the socket, so that trickling
    bytes gains no time; `look` raises to give up. Raises WireError, or without `look` TimeoutError
    if the socket's timeout passes.
    """
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size, look))
    if length > at_most:
        raise MessageTooLong(f"a message of {length:,} bytes; at most {at_most:,} are taken")
    return _exactly(connection, length, look)


def decode(data: bytes | bytearray) -> Any:
    """Return the message that these bytes encode. Raises WireError, without quoting them."""
    end = data.find(b"\n")  # arrays' bytes come after it and aren't read as JSON
    end = len(data) if end < 0 else end
    if data.count(b"[", 0, end) + data.count(b"{", 0, end) > _MAX_CONTAINERS:
        raise WireError(f"a message of over {_MAX_CONTAINERS:,} lists and dicts")
    try:
        return serialization.decode(data)
    except serialization.PlainError:
        raise WireError("a message that isn't plain data") from None


def _exactly(connection: socket.socket, count: int, look: Callable[[], None] | None) -> bytearray:
    data = bytearray(count)
    left = memoryview(data)
    while left:
        try:
            taken = connection.recv_into(left)
            if not taken:
                raise ConnectionClosed("the other side closed the connection")
            left = left[taken:]
        except TimeoutError:
            if look is None:
                raise
        except OSError as error:
            raise ConnectionClosed(str(error)) from None
        if look is not None:
            look()
    return data
