"""The wire: what is taken off a socket that a stranger writes to."""

import socket
import threading

import numpy as np
import pytest

from autograder.sandbox.guest.wire import (
    MAX_MESSAGE,
    ConnectionClosed,
    WireError,
    receive,
    send,
    take,
)
from peakmem.core import serialization
from peakmem.core.serialization import PlainError


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def frame(data):
    return len(data).to_bytes(8, "big") + data


def test_messages_come_one_at_a_time(ends):
    ours, theirs = ends
    for message in ({"id": 1}, (1.5, None), "text"):
        send(theirs, message)
    assert [receive(ours) for _ in range(3)] == [{"id": 1}, (1.5, None), "text"]


def test_a_length_above_the_bound_is_refused_before_any_of_it_is_read(ends):
    ours, theirs = ends
    theirs.sendall((MAX_MESSAGE + 1).to_bytes(8, "big"))
    with pytest.raises(WireError, match="at most"):
        receive(ours)
    theirs.sendall(frame(b"12345678"))
    with pytest.raises(WireError, match="8 bytes; at most 7"):
        take(ours, 7)


def test_who_waits_is_asked_after_each_piece_and_each_pause(ends):
    ours, theirs = ends
    ours.settimeout(0.01)
    looks = []

    def look():
        looks.append(len(looks))
        if len(looks) == 2:
            theirs.sendall(frame(b"12345678")[:9])
        if len(looks) == 6:
            theirs.sendall(frame(b"12345678")[9:])

    assert take(ours, look=look) == b"12345678"
    assert len(looks) >= 7


def test_who_waits_gives_up_though_bytes_keep_coming(ends):
    ours, theirs = ends
    theirs.sendall(frame(b"12345678")[:-1])

    def look():
        raise InterruptedError

    with pytest.raises(InterruptedError):
        take(ours, look=look)
    ours.settimeout(0.01)
    with pytest.raises(TimeoutError):
        take(ours)


def test_who_does_not_read_is_looked_at_until_it_does(ends):
    ours, theirs = ends
    ours.settimeout(0.01)
    message, readers, received = b"x" * 2**20, [], []

    def look():
        if len(readers) == 0 and len(looks) == 5:
            readers.append(threading.Thread(target=lambda: received.append(receive(theirs))))
            readers[0].start()
        looks.append(None)

    looks = []
    send(ours, message, look)
    readers[0].join()
    assert received == [message]


def test_who_never_reads_is_given_up(ends):
    ours, _ = ends
    ours.settimeout(0.01)

    def look():
        raise InterruptedError

    with pytest.raises(InterruptedError):
        send(ours, b"x" * 2**20, look)
    with pytest.raises(ConnectionClosed, match="timed out"):
        send(ours, b"x" * 2**20)


def test_what_is_too_large_is_not_sent(ends):
    with pytest.raises(PlainError, match="too large"):
        send(ends[1], bytes(MAX_MESSAGE))


def test_the_other_sides_end_shows(ends):
    ours, theirs = ends
    theirs.sendall(frame(b"12345678")[:-1])
    theirs.close()
    with pytest.raises(ConnectionClosed):
        receive(ours)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"canary",
        b'{"canary": 1}',
        b'{"float": "canary"}',
        b'{"int": "canary"}',
        b'{"set": [[]]}',
        b"\x80\x04canary",
        b'"\xff canary"',
        b'{"array": "canary"}',
        b'{"array": ["canary", "C", [1]]}\n',
        b'{"array": ["<f8", "C", ["canary"]]}\n',
        b"1\ncanary",
        b"[" * 10_000,
    ],
)
def test_what_is_no_message_is_refused_and_never_quoted(ends, data):
    ours, theirs = ends
    theirs.sendall(frame(data))
    with pytest.raises(WireError) as caught:
        receive(ours)
    assert "canary" not in str(caught.value)


def test_millions_of_small_lists_are_refused_before_they_are_made(ends):
    ours, theirs = ends
    data = b"[" + b"[]," * 500_000 + b"[]]"
    with pytest.raises(WireError, match="lists"):
        _pass(ours, theirs, data)


def test_an_arrays_bytes_are_not_taken_for_lists(ends):
    ours, theirs = ends
    brackets = np.full(500_000, ord("["), np.uint8)
    received = _pass(ours, theirs, serialization.encode(brackets))
    assert received.tobytes() == brackets.tobytes()


def test_keys_that_all_collide_are_refused(ends):
    ours, theirs = ends
    keys = ",".join(f'{{"int":"{k * (2**61 - 1):x}"}}' for k in range(1, 5000))
    with pytest.raises(WireError, match="isn't plain data"):
        _pass(ours, theirs, f'{{"set":[{keys}]}}'.encode())


def _pass(ours, theirs, data):
    """Send what is larger than a socket's buffer, from a thread, and receive it."""
    sender = threading.Thread(target=theirs.sendall, args=(frame(data),))
    sender.start()
    try:
        return receive(ours)
    finally:
        sender.join()
