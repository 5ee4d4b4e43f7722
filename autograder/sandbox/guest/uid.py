"""Confines a process to its own user id, on systems that refuse namespaces.

Linux only, as root, in a fork of the prepared process (`server`). The fork becomes the guard of one
submission: it stays root, runs no student code, and ends all processes of the submission's user id
once the grader asks, the grader dies, or the student's process ends. Its child permanently gives up
root for that user id, and becomes the student's process. docs/threat_model.md explains how this
isolation is weaker than namespaces.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from autograder.sandbox.guest.listener import hand_over_listener
from autograder.sandbox.guest.namespaces import (
    drop_bounding_set,
    give_up_capabilities,
    prctl,
    set_limits,
    silence_terminal,
)
from autograder.sandbox.guest.seccomp import Step, filter_system_calls, refuse_system_calls

__all__ = ["CLEAN", "PLACES", "confine", "processes_of"]

CLEAN = b"clean"  # the guard's last message: nothing of the user's remains
PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")  # writable by everyone

_PR_SET_CHILD_SUBREAPER, _PR_SET_DUMPABLE = 36, 4
_TICK_MS = 200  # milliseconds between checks for ended orphans
_END = 20.0  # seconds allowed for ending all processes of a user

# Refused in addition to `seccomp`: calls that the missing namespaces would have contained.
REFUSED = {
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "socket": (41, 198),
    "mq_open": (240, 180),
}
_SOCKETPAIR, _PRCTL = (53, 199), (157, 167)
_AF_UNIX, _SOCK_STREAM, _SOCK_KINDS = 1, 1, 0xF
_LOAD, _AND, _EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_NUMBER, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 16, 24  # offsets in struct seccomp_data
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 38  # ENOSYS


def confine(
    limits: Mapping[str, Any], connection: socket.socket, leash: socket.socket, *, overseen: bool
) -> None:
    """Return in a process with the user id `limits["user"]` and only `connection` open.

    If it is `overseen`, the other end of `connection` gets the `listener`.

    The calling process becomes its guard and never returns. It ends when the other end of `leash`
    is shut down, and sends `CLEAN` on it, or a sentence on what it couldn't do. `limits` has the
    keys that `shut_in` takes, and `home`, a folder to create and remove again. The user id and the
    next one must be unused. Raises OSError if a layer can't be set up.
    """
    user, home = int(limits["user"]), Path(limits["home"])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)  # this process adopts orphans of the student's process
    home.mkdir(mode=0o700)
    os.chown(home, user, user)
    student = os.fork()
    if student == 0:
        _close_all_but(connection.fileno())
        _become(user, home, limits, connection if overseen else None)
        return
    try:
        _close_all_but(leash.fileno())
        _guard(student, user, home, leash)
    except BaseException as error:
        leash.sendall(f"{type(error).__name__}: {error}"[:500].encode())
    finally:
        os._exit(0)


def _become(
    user: int, home: Path, limits: Mapping[str, Any], connection: socket.socket | None
) -> None:
    """Give up root for `user`. The order matters: each step needs rights that later steps drop."""
    # This process adopts its descendants' orphans, so that their memory counts towards it, as in a
    # process namespace. The filter keeps this setting.
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    os.setsid()
    os.chdir(home)
    os.umask(0o077)
    os.environ |= {"HOME": str(home), "TMPDIR": str(home)}
    silence_terminal()
    set_limits(limits)
    drop_bounding_set()
    os.setgroups([])
    os.setresgid(user, user, user)
    # From here on, only root can see this process's memory or reset its peak, because the process
    # isn't "dumpable". The filter keeps it so, and the grader would notice a new program.
    os.setresuid(user, user, user)
    give_up_capabilities()
    if connection is not None:
        hand_over_listener(connection)
    refuse_system_calls(gpu=limits["gpu"], ranks=False)
    filter_system_calls(no_way_out)


def no_way_out(column: int, _architecture: int) -> Iterator[Step]:
    """Yield a filter that leaves no way out: no address, no name, no view of other programs."""
    yield _LOAD, 0, 0, _NUMBER
    for numbers in REFUSED.values():
        yield _EQUAL, 0, 1, numbers[column]
        yield _RETURN, 0, 0, _REFUSE
    # A socket pair leads nowhere else, except that datagrams can be sent to any name.
    yield _EQUAL, 0, 6, _SOCKETPAIR[column]
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    yield _EQUAL, 0, 3, _AF_UNIX
    yield _LOAD, 0, 0, _SECOND_ARGUMENT
    yield _AND, 0, 0, _SOCK_KINDS
    yield _EQUAL, 5, 0, _SOCK_STREAM
    yield _RETURN, 0, 0, _REFUSE
    yield _EQUAL, 0, 3, _PRCTL[column]
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    yield _EQUAL, 2, 0, _PR_SET_DUMPABLE
    yield _EQUAL, 1, 0, _PR_SET_CHILD_SUBREAPER
    yield _RETURN, 0, 0, _ALLOW
    yield _RETURN, 0, 0, _REFUSE


def _guard(student: int, user: int, home: Path, leash: socket.socket) -> None:
    ended = os.pidfd_open(student)
    waiting = select.poll()
    waiting.register(leash, select.POLLIN)
    waiting.register(ended, select.POLLIN)
    while not waiting.poll(_TICK_MS):
        _reap()
    deadline = time.monotonic() + _END
    _kill_all(user)
    _reap()
    while left := processes_of(user):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {left} of user {user} did not end")
        time.sleep(0.005)
        _kill_all(user)
        _reap()
    _remove_files(user, home)
    leash.sendall(CLEAN)


def _kill_all(user: int) -> None:
    """Kill all processes with this user id, in one call that no fork escapes.

    Only the caller's effective id is this user id, so it can kill them but they can't kill it.
    """
    killer = os.fork()
    if killer == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user + 1, user, user + 1)
            give_up_capabilities()  # with CAP_KILL, the call would kill the grader too
            if os.getresuid() == (user + 1, user, user + 1):
                os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(killer, 0)


def processes_of(user: int) -> list[int]:
    """Return the running processes that have this user id as any of their ids."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text(errors="replace")
        except OSError:
            continue  # it has just ended
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        ended = fields["State"].split()[0] in "ZX"
        if not ended and str(user) in fields["Uid"].split():
            found.append(int(status.parent.name))
    return found


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _remove_files(user: int, home: Path) -> None:
    """Remove the user's files. No process of the user is left to swap a folder for a link."""
    places = [place for place in PLACES if Path(place).is_dir()]
    rid = ["rm", "-rf", "--", str(home)]
    find = ["find", *places, "-xdev", "-user", str(user), "-prune"]
    for command in (rid, [*find, "-exec", "rm", "-rf", "--", "{}", "+"], [*find, "-print"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if command[-1] == "-print" and done.stdout:
            raise OSError(f"files of user {user} stayed: {done.stdout[:300]}")
    if home.exists():
        raise OSError(f"{home} could not be removed")


def _close_all_but(kept: int) -> None:
    os.closerange(3, kept)
    os.closerange(max(3, kept + 1), 2**31 - 1)
