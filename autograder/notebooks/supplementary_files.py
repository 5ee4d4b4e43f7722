"""Reads the files that students submit with the notebooks, such as a CSV or a helper module.

nbgrader copies them next to the notebook that it runs, and then copies the instructor's files over
them. Here they are read within bounds (plain files only, no links), and placed only in the
sandbox's working directory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from autograder.base.course import is_ignored
from autograder.base.plain_text import plain_text
from autograder.base.plural import first_of
from autograder.notebooks.intake import open_folder

__all__ = ["read_beside"]

_MOST_FILES = 100  # folders included
_MOST_BYTES = 10 * 2**20  # all files together
_DEEPEST = 5  # nested folders
_NOT_THEIRS = "timestamp.txt"  # written by `nbgrader collect` and `zip_collect`


def read_beside(
    path: Path, given: Mapping[str, Path], ignored: tuple[str, ...]
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files in the folder of the notebook `path` by relative path, and remarks.

    Leaves out notebooks, hidden files, names that match `ignored`, and files with the name of a
    `given` file, which the course provides. If there are too many files or bytes, returns no files.
    The remarks say which other files weren't read, and which given files differ from the student's.

    Raises Quarantine if the folder doesn't exist or is a link.
    """
    with open_folder(path) as folder:
        return _Reading(given, ignored).of(folder)


class _TooMuch(Exception):
    """The folder holds more than may be read; the message says how much."""


class _Reading:
    """The files of one student's folder that have been read so far."""

    def __init__(self, given: Mapping[str, Path], ignored: tuple[str, ...]) -> None:
        self._given, self._ignored = given, ignored
        self._given_folders = {str(up) for name in given for up in Path(name).parents}
        self._known = self._given_folders | set(given)  # copies of these don't count as extra files
        self._files: dict[str, bytes] = {}
        self._odd: list[str] = []
        self._replaced: list[str] = []
        self._count = 0
        self._bytes_left = _MOST_BYTES

    def of(self, folder: int) -> tuple[dict[str, bytes], tuple[str, ...]]:
        try:
            self._read_all(folder, "", 1)
        except _TooMuch as error:
            return {}, (f"The files submitted with the notebooks weren't read: {error}.",)
        odd = f"Files submitted with the notebooks that weren't read: {_some(self._odd)}."
        instead = f"Also submitted, but replaced by the course's own: {_some(self._replaced)}."
        said = ((self._odd, odd), (self._replaced, instead))
        return self._files, tuple(sentence for about, sentence in said if about)

    def _read_all(self, folder: int, above: str, depth: int) -> None:
        for name in sorted(self._names(folder, above, depth)):
            self._read(folder, name, above + name, depth)

    def _names(self, folder: int, above: str, depth: int) -> Iterator[str]:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if depth == 1 and (name.endswith(".ipynb") or name == _NOT_THEIRS):
                    continue
                if name.startswith(".") or is_ignored(name, self._ignored):
                    continue
                if above + name not in self._known:
                    self._count += 1
                if self._count > _MOST_FILES:
                    raise _TooMuch(f"there are over {_MOST_FILES} of them")
                yield name

    def _read(self, folder: int, name: str, path: str, depth: int) -> None:
        try:
            if path.isprintable():  # rules out names that can't be encoded
                self._read_one(folder, name, path, depth)
            else:
                self._odd.append(f"{path!a} (its name)")
        except OSError as error:  # unreadable, or replaced meanwhile
            self._odd.append(f"{path} ({error.strerror})")

    def _read_one(self, folder: int, name: str, path: str, depth: int) -> None:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode) and path not in self._given:
            self._read_folder(folder, name, path, depth)
        elif not stat.S_ISREG(mode):
            self._odd.append(f"{path} ({'a link' if stat.S_ISLNK(mode) else 'not a plain file'})")
        elif path in self._given_folders:
            self._replaced.append(path)
        else:
            self._read_file(folder, name, path)

    def _read_folder(self, folder: int, name: str, path: str, depth: int) -> None:
        if depth == _DEEPEST:
            self._odd.append(f"{path} (too deep)")
            return
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        opened = os.open(name, flags, dir_fd=folder)
        try:
            self._read_all(opened, f"{path}/", depth + 1)
        finally:
            os.close(opened)

    def _read_file(self, folder: int, name: str, path: str) -> None:
        # Opened without blocking, because a pipe may have replaced the file meanwhile.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        opened = os.open(name, flags, dir_fd=folder)
        with os.fdopen(opened, "rb") as file:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                self._odd.append(f"{path} (it has a second name elsewhere)")
                return
            if path in self._given:
                if not _same(file, status.st_size, self._given[path]):
                    self._replaced.append(path)
                return
            raw = file.read(self._bytes_left + 1)  # the file may be growing
        if len(raw) > self._bytes_left:
            raise _TooMuch(f"they have over {_MOST_BYTES / 2**20:g} MiB")
        self._bytes_left -= len(raw)
        self._files[path] = raw


def _same(file: IO[bytes], size: int, given: Path) -> bool:
    return size == given.stat().st_size and file.read(size) == given.read_bytes()


def _some(names: list[str]) -> str:
    return plain_text(first_of([name[:80] for name in names]))
