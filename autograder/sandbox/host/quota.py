"""Watches the memory and disk space that one submission's user id holds, from outside."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from autograder.base import memory
from autograder.base.limits import Limits, ProcessLost
from autograder.sandbox.guest.uid import PLACES

__all__ = ["Quota"]

_LOOK = 0.5  # seconds between checks of the disk


class Quota(memory.Watch):
    """Watches memory, and also a user's files if no file system of its own bounds them.

    Deleted files aren't found, but if a process has mapped them, they count as memory.
    """

    def __init__(self, pid: int, limits: Limits, user: int, home: Path) -> None:
        super().__init__(pid, limits.memory_bytes)
        self._user = user
        self._limits = limits
        self._places = [str(home), *PLACES]
        self._next = 0.0

    def exceeded(self) -> bool:
        if time.monotonic() >= self._next:
            self._look_at_files()
            self._next = time.monotonic() + _LOOK
        return super().exceeded()

    def _look_at_files(self) -> None:
        limits, count, total = self._limits, 0, 0
        most = limits.tmp_bytes + limits.shm_bytes
        waiting = list(self._places)
        while waiting:
            for path, status in _entries(waiting.pop()):
                own = status.st_uid == self._user
                if own:
                    count, total = count + 1, total + 512 * status.st_blocks
                if stat.S_ISDIR(status.st_mode) and (own or status.st_mode & stat.S_IWOTH):
                    waiting.append(path)
            if count > limits.files or total > most:
                raise ProcessLost(
                    f"Your code wrote over {most / 2**20:g} MiB, or {limits.files} files, and "
                    "was stopped."
                )


def _entries(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The entries of a folder. Raises ProcessLost if they can't be listed and counted."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # it was removed meanwhile
                    yield entry.path, entry.stat(follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return  # so was the folder
    except OSError as error:
        raise ProcessLost(
            f"Your code made a folder that can't be read ({error.strerror}), such as one nested "
            "too deep to have a path, and was stopped."
        ) from None
