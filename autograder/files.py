"""Files that are whole or not there: what a reader finds was never half written."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

__all__ = ["inside", "write_whole"]


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
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def inside(folder: Path, *names: str) -> Path:
    """Return `folder / names...`, where each name is one plain step down.

    Raises ValueError for a name that would lead elsewhere, such as `..` or `a/b`.
    """
    for name in names:
        if name in {"", ".", ".."} or set(name) & set("/\\\0"):
            raise ValueError(f"{name!r} cannot name a file: rename the submission's folder")
    return folder.joinpath(*names)
