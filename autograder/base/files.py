"""Writes files that are whole or not there: a reader never finds half of one."""

from __future__ import annotations

import os
import re
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

if sys.platform != "win32":
    import fcntl

__all__ = ["drop_drafts", "inside", "is_between", "write_whole"]

_DRAFT = re.compile(r"\..+\.[0-9a-f]{16}")


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` to `path` in one step; a crash leaves the old file, or none.

    Folders above `path` are made. A file that holds these bytes already is left alone.
    """
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Process ids repeat from machine to machine, and several may write into one folder.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with draft.open("wb") as file:
            _claim(file)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def drop_drafts(folder: Path) -> None:
    """Remove below `folder` what `write_whole` left there when it was killed.

    A draft that is being written is locked by its writer, or still empty. Both stay.
    """
    for where, _, names in os.walk(folder):
        for name in names:
            path = Path(where, name)
            if _DRAFT.fullmatch(name) and path.is_file() and path.stat().st_size:
                with suppress(OSError), path.open("rb") as file:
                    _claim(file, wait=False)
                    path.unlink()


def _claim(file: IO[bytes], *, wait: bool = True) -> None:
    """Take the file's lock, which the system gives back when this process ends.

    Where a file system has no locks, a writer goes without; who wants to remove the file may not.
    """
    if sys.platform == "win32":  # where nothing is graded
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        if not wait:
            raise


def is_between(path: Path, start: bytes, end: bytes) -> bool:
    """Tell whether there is a file that starts and ends so, as a whole one of its kind does."""
    if not path.is_file() or path.stat().st_size < len(start + end):
        return False
    with path.open("rb") as file:
        first = file.read(len(start))
        file.seek(-len(end), os.SEEK_END)
        return (first, file.read()) == (start, end)


def inside(folder: Path, *names: str) -> Path:
    """Return `folder / names...`, where each name is one plain step down.

    Raises ValueError for a name that would lead elsewhere, such as `..` or `a/b`.
    """
    for name in names:
        if name in {"", ".", ".."} or set(name) & set("/\\\0"):
            raise ValueError(f"{name!r} cannot name a file: rename the submission's folder")
    return folder.joinpath(*names)
