"""Expensive fixtures, made once for all of pytest's processes instead of once in each."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

__all__ = ["shared"]

T = TypeVar("T")


@contextmanager
def shared(name: str, make: Callable[[Path], T]) -> Iterator[T]:
    """The result of `make(folder)`, from the first process of this run that asks for `name`.

    The others wait for it and get a copy (it travels as a pickle), and all see the same folder,
    which ordinary users may enter and no test may change. The last to leave removes it.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    # Not pytest's folder for such things: only its owner may enter that one.
    place = Path(tempfile.gettempdir()) / f"peakmem-{run}-{name.replace(' ', '-')}"
    folder, made, users = place / "folder", place / "made.pickle", place / "users"
    lock = FileLock(f"{place}.lock")
    with lock:
        if not made.exists():
            shutil.rmtree(place, ignore_errors=True)  # left by a process whose `make` failed
            folder.mkdir(parents=True)
            made.write_bytes(pickle.dumps(make(folder)))
        value: T = pickle.loads(made.read_bytes())  # our own, of this very run
        users.write_text(f"{_count(users) + 1}")
    try:
        yield value
    finally:
        with lock:
            users.write_text(f"{_count(users) - 1}")
            if _count(users) == 0:
                shutil.rmtree(place)


def _count(users: Path) -> int:
    return int(users.read_text()) if users.exists() else 0
