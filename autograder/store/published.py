"""Records what the last publication was based on, in one file, OUT/published.json.

It holds copies of the small files that the journal can't restore: the submissions taken in,
waivers, the attempts that count, what Formgrader has shown, and manual grades. It tells a lost file
from one that never existed, and lets `autograder repair` restore lost files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from autograder.base.damage import is_there, read_json
from autograder.base.files import write_whole
from autograder.model.submission import SubmissionKey
from autograder.store.manual_backup import (
    Manual,
    from_json,
    is_manual,
    manual_in,
    restore,
    submissions_in,
    to_json,
)
from autograder.store.out_folder import OutFolder
from autograder.store.small_files import COUNTED, SHOWN, TAKEN, WAIVED, SmallFile

__all__ = [
    "Published",
    "await_gradebook",
    "have_wait",
    "note_published",
    "published",
    "put_back",
]

_VERSION = 1


@dataclass(frozen=True)
class Published:
    """Copies of the small files, each as its JSON, and of the manual grades."""

    #: The submissions that were taken in.
    taken: Sequence[Sequence[str]] = ()
    #: The waivers.
    waived: Mapping[str, Any] = field(default_factory=dict)
    #: Which attempts count.
    counted: Mapping[str, Any] = field(default_factory=dict)
    #: What Formgrader has shown.
    shown: Mapping[str, Any] = field(default_factory=dict)
    #: The manual grades in the gradebook.
    manual: Mapping[str, Any] = field(default_factory=dict)
    #: Manual grades of submissions that currently have no automatic grade, and so no row in the
    #: gradebook.
    waiting: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the instructor had written rules.
    settings: bool = False

    def copy(self, small: SmallFile) -> Any:
        """Return the copy of one of the small files."""
        return getattr(self, small.name)


def published(out: OutFolder) -> Published:
    """Return the record of the last publication in `out`; an empty one if there was none.

    Raises Damaged if the file can't be read.
    """
    path = out.published
    if not is_there(path):
        return Published()
    data = read_json(path, _is_published, "the record of what was last published")
    del data["version"]
    return Published(**data)


def put_back(out: OutFolder) -> None:
    """Restore manual grades into a gradebook that was rewritten without them."""
    record = published(out)
    waiting = from_json(record.waiting)
    if not waiting:
        return
    homeless = restore(out, waiting)
    if homeless != waiting:
        # Restored grades no longer wait, so that an instructor can remove them.
        _write(out, replace(record, manual=to_json(manual_in(out)), waiting=to_json(homeless)))


def await_gradebook(out: OutFolder) -> None:
    """Make manual grades wait if the gradebook, perhaps a new one, lacks their submissions."""
    record = published(out)
    there = submissions_in(out) if record.manual else set()
    gone = {key: one for key, one in from_json(record.manual).items() if key not in there}
    if gone:
        have_wait(out, {**from_json(record.waiting), **gone})


def have_wait(out: OutFolder, manual: Mapping[SubmissionKey, Manual]) -> None:
    """Make these manual grades wait until the gradebook has rows for them."""
    record = published(out)
    kept = {key: one for key, one in from_json(record.manual).items() if key not in manual}
    _write(out, replace(record, manual=to_json(kept), waiting=to_json(manual)))


def note_published(out: OutFolder) -> None:
    """Record the state of `out` after everything was published."""
    now = Published(
        taken=TAKEN.read(out),
        waived=WAIVED.read(out),
        counted=COUNTED.read(out),
        shown=SHOWN.read(out),
        manual=to_json(manual_in(out)),
        waiting=published(out).waiting,
        settings=is_there(out.semester),
    )
    _write(out, now)


def _write(out: OutFolder, record: Published) -> None:
    data = {"version": _VERSION, **asdict(record)}
    write_whole(out.published, json.dumps(data, sort_keys=True, indent=0).encode())


def _is_published(data: object) -> bool:
    return (
        isinstance(data, dict)
        and data.get("version") == _VERSION
        and data.keys() == {"version", *asdict(Published())}
        and TAKEN.is_valid(data["taken"])
        and WAIVED.is_valid(data["waived"])
        and COUNTED.is_valid(data["counted"])
        and SHOWN.is_valid(data["shown"])
        and is_manual(data["manual"])
        and is_manual(data["waiting"])
        and isinstance(data["settings"], bool)
    )
