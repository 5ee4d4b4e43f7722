"""Draws unused user ids for submissions, and tells what such a user can read."""

from __future__ import annotations

import os
import pwd
import secrets
from collections.abc import Iterable
from pathlib import Path

from autograder.sandbox.guest.uid import processes_of
from autograder.sandbox.host.isolation import IsolationError

__all__ = ["draw_user", "readable_by"]

# User ids unlikely to be in use; the second range is for containers that have only 65536.
_RANGES = ((1_900_000_000, 2_000_000_000), (61_184, 65_500))
_SLOTS = 64  # graders that may run at the same time on one machine


def draw_user(slot: int) -> int:
    """Return a UID such that neither it nor UID+1 is in use; two slots never get the same one.

    Raises IsolationError if there is none.
    """
    lines = Path("/proc/self/uid_map").read_text().split("\n")
    mapped = [tuple(map(int, line.split())) for line in lines if line]
    for first, end in _RANGES:
        if not any(start <= first and end <= start + count for start, _, count in mapped):
            continue
        turns = (end - first) // (2 * _SLOTS)
        for _ in range(100):
            user = first + 2 * (secrets.randbelow(turns) * _SLOTS + slot % _SLOTS)
            if not any(_has_owner(u) or processes_of(u) for u in (user, user + 1)):
                return user
    raise IsolationError("this system has no user ids to spare for students' code")


def readable_by(user: int, paths: Iterable[Path]) -> list[Path]:
    """Return those of `paths` that a process with this user id can open, list or enter.

    Raises IsolationError if this process may not change its user id.
    """
    asked = [(path, path.is_dir()) for path in paths if path.exists()]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            for path, folder in asked:
                open_ = os.access(path, os.R_OK) or (folder and os.access(path, os.X_OK))
                os.write(writing, b"y" if open_ else b"n")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    if len(said) != len(asked):
        raise IsolationError("this process may not change to another user id")
    return [path for (path, _), open_ in zip(asked, said.decode(), strict=True) if open_ == "y"]


def _has_owner(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True
