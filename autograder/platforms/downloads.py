"""Reads unmodified downloads from Canvas, Moodle and Gradescope.

Each platform names the files of a download in its own way:

- Canvas: `lovelaceada_LATE_4711_98765_lab01_formats-1.ipynb`: the name as it is sorted, `LATE` if
  the platform marks it as late, the user's id, the file's id, and the file's own name, with `-1`
  and so on for later submissions.
- Moodle: `Ada Lovelace_123456_assignsubmission_file_/lab01_formats.ipynb`, or the same without the
  folder. The number belongs to this assignment alone.
- Gradescope: `submission_123/lab01_formats.ipynb`, and one `submission_metadata.yml` with the
  sender and the time of each submission.

Students choose the names of their files, and of folders in them, so these may look like another
platform's. The platform's own part comes first in a path, and that decides who sent a file.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

__all__ = ["MAX_FILE_BYTES", "Download", "Sender", "Upload", "open_download"]

MAX_FILE_BYTES = 64 * 2**20  # bytes of one unpacked file; larger notebooks can't be graded

_METADATA = "submission_metadata.yml"
_MOODLES = "_assignsubmission_"  # in each of its paths, before the student's part
_CANVAS = re.compile(
    r"(?P<name>[^/]+?)_(?:(?P<late>LATE)_)?(?P<user>\d+|[A-Za-z0-9]{5})_\d+_(?P<file>[^/]+)"
)
_MOODLE = re.compile(
    r"(?P<name>[^/]+?)_(?P<number>\d+)_assignsubmission_(?:file|onlinetext)[_/]+(?P<file>.+)"
)
_LEFT_BY_PROGRAMS = re.compile(r"(.*/)?(__MACOSX/.*|\._[^/]*|\.DS_Store|Thumbs\.db)")


@dataclass(frozen=True)
class Sender:
    """A student as the platform knows them. Unknown fields are empty."""

    #: The full name; Canvas gives it in one word, last name first.
    name: str = ""
    #: The platform's name for the student in this download.
    handle: str = ""
    #: The student's number on the platform, the same in all of its downloads.
    number: str = ""
    #: The student's id at the university.
    id: str = ""
    #: The student's e-mail address.
    email: str = ""


@dataclass(frozen=True)
class Upload:
    """One file of a download."""

    #: Its path in the download.
    path: str
    #: Who sent it; several for a group's work.
    senders: tuple[Sender, ...]
    #: The file's own name, as the student gave it.
    name: str
    #: Returns its bytes. Raises ValueError above `MAX_FILE_BYTES`.
    read: Callable[[], bytes]
    #: When the platform received it, if it says so.
    received: datetime | None = None
    #: Whether the platform marks it as late.
    late: bool = False


@dataclass(frozen=True)
class Download:
    """The uploads of one assignment."""

    #: The platform's name.
    platform: str
    #: The students' files.
    uploads: tuple[Upload, ...]
    #: The paths of files that belong to no submission.
    others: tuple[str, ...]


@contextmanager
def open_download(path: Path) -> Iterator[Download]:
    """Yield the download at `path`: a zip file, or the folder that it was unpacked into.

    Raises ValueError if it is neither, or isn't a download from a known platform.
    """
    if path.is_dir():
        yield _download(path, _files_of_folder(path))
        return
    try:
        archive = zipfile.ZipFile(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{path} doesn't exist; expected the download of an assignment's submissions from "
            "Canvas, Moodle or Gradescope, or the folder it was unpacked into"
        ) from error
    except (zipfile.BadZipFile, OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is not a zip file ({error}); expected the download of an assignment's "
            "submissions from Canvas, Moodle or Gradescope, or the folder it was unpacked into"
        ) from error
    with archive:
        yield _download(path, _files_of_zip(archive))


_Files = Mapping[str, Callable[[], bytes]]


def _files_of_folder(folder: Path) -> _Files:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return {file.relative_to(folder).as_posix(): partial(_read_file, file) for file in files}


def _files_of_zip(archive: zipfile.ZipFile) -> _Files:
    """The entries by name; if several have the same name, all but the last get a number."""
    files: dict[str, Callable[[], bytes]] = {}
    seen: Counter[str] = Counter()
    for entry in reversed(archive.infolist()):
        if not entry.is_dir():
            name = entry.filename
            seen[name] += 1
            again = f" (entry {seen[name]} from the end)" if seen[name] > 1 else ""
            files[f"{name}{again}"] = partial(_read_entry, archive, entry)
    return files


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return _bounded(path.name, file.read(MAX_FILE_BYTES + 1))


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(entry) as file:  # the size that the entry states may be false
            data = file.read(MAX_FILE_BYTES + 1)
    except Exception as error:  # each way of compressing raises kinds of its own
        raise ValueError(
            f"{entry.filename} can't be unpacked ({error}); download the zip again"
        ) from error
    return _bounded(entry.filename, data)


def _bounded(name: str, data: bytes) -> bytes:
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(
            f"{name} is larger than {MAX_FILE_BYTES >> 20} MiB; expected a notebook. Ask the "
            "student for a copy without outputs"
        )
    return data


def _download(path: Path, files: _Files) -> Download:
    files = {name: read for name, read in files.items() if not _LEFT_BY_PROGRAMS.fullmatch(name)}
    # A student may submit a file of this name too: on Gradescope, deeper; on Moodle, in a folder.
    metadata = [name for name in files if PurePosixPath(name).name == _METADATA]
    if own := [name for name in metadata if _MOODLES not in name]:
        found = _of_gradescope(files, min(own, key=len))
    else:
        # Moodle's first: there, a file's own name may look like one of Canvas's.
        found = max(_of_moodle(files), _of_canvas(files), key=lambda it: len(it.uploads))
    if not found.uploads:
        some = ", ".join(sorted(files)[:3]) or "no file"
        raise ValueError(
            f"{path} contains {some}; expected the files of a download from Canvas "
            "(lovelaceada_4711_98765_lab01_formats.ipynb), from Moodle (Ada "
            "Lovelace_123456_assignsubmission_file_/lab01_formats.ipynb) or from Gradescope "
            f"(with {_METADATA})"
        )
    return found


def _of_canvas(files: _Files) -> Download:
    uploads = []
    for path, read in files.items():
        parts = PurePosixPath(path).parts
        # The first, because students choose all names within their own folders.
        match = next(filter(None, map(_CANVAS.fullmatch, parts)), None)
        if match and not any(_MOODLES in part for part in parts[:-1]):
            sender = Sender(match["name"], f"{match['name']}_{match['user']}", match["user"])
            name = match["file"] if match.string == parts[-1] else parts[-1]
            uploads.append(Upload(path, (sender,), name, read, late=match["late"] is not None))
    return _with_others("Canvas", files, uploads)


def _of_moodle(files: _Files) -> Download:
    uploads = []
    for path, read in files.items():
        if match := _MOODLE.fullmatch(path):
            name = match["name"].rpartition("/")[2]
            sender = Sender(name, f"{name}_{match['number']}")
            uploads.append(Upload(path, (sender,), PurePosixPath(match["file"]).name, read))
    return _with_others("Moodle", files, uploads)


def _of_gradescope(files: _Files, metadata: str) -> Download:
    import yaml  # only Gradescope's metadata need it

    try:
        told = yaml.safe_load(files[metadata]())
    except yaml.YAMLError as error:
        raise ValueError(f"{metadata} can't be read ({error}); download it again") from error
    if not isinstance(told, dict):
        raise ValueError(f"{metadata} contains no table of submissions; download it again")
    top = PurePosixPath(metadata).parent
    uploads = []
    files = {path: read for path, read in files.items() if path != metadata}
    for path, read in files.items():
        inner = PurePosixPath(path)
        parts = inner.relative_to(top).parts if inner.is_relative_to(top) else ()
        about = told.get(parts[0]) if len(parts) > 1 else None
        if isinstance(about, dict):
            senders, received = _senders(about.get(":submitters")), _time(about.get(":created_at"))
            uploads.append(Upload(path, senders, inner.name, read, received=received))
    return _with_others("Gradescope", files, uploads)


def _senders(told: Any) -> tuple[Sender, ...]:
    listed = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    return tuple(
        Sender(
            **{
                name: str(one.get(key) or "").strip()
                for name, key in (("name", ":name"), ("id", ":sid"), ("email", ":email"))
            }
        )
        for one in listed
    )


def _time(told: Any) -> datetime | None:
    """A time with its offset; YAML parses one with `Z`, but leaves one with `+0100` as text."""
    if isinstance(told, str):
        try:
            told = datetime.fromisoformat(re.sub(r" (?=[-+]\d{4}$)", "", told))
        except ValueError:
            return None
    if not isinstance(told, datetime):
        return None
    return told if told.tzinfo else told.replace(tzinfo=UTC)  # so YAML defines it


def _with_others(platform: str, files: _Files, uploads: list[Upload]) -> Download:
    known = {upload.path for upload in uploads}
    return Download(platform, tuple(uploads), tuple(sorted(set(files) - known)))
