"""What the last publication rested on, in one file, OUT/published.json.

It holds copies of the small files that no journal can give back: who was taken in, what is waived,
which attempts count, what graders were shown, and their manual grades. By it a missing file is told
from one that never was, and `autograder repair` puts back what was lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
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

    #: Who was taken in.
    taken: Sequence[Sequence[str]] = ()
    #: What is waived.
    waived: Mapping[str, Any] = field(default_factory=dict)
    #: Which attempts count.
    counted: Mapping[str, Any] = field(default_factory=dict)
    #: What Formgrader has shown.
    shown: Mapping[str, Any] = field(default_factory=dict)
    #: The manual grades in the gradebook.
    manual: Mapping[str, Any] = field(default_factory=dict)
    #: Manual grades of submissions without an automatic one at the moment, for which the gradebook
    #: has no place.
    waiting: Mapping[str, Any] = field(default_factory=dict)
    #: Whether there were rules of the instructor's.
    settings: bool = False

    def copy(self, small: SmallFile) -> Any:
        """The copy of one of the small files."""
        return getattr(self, Path(small.name).stem)


def published(out: OutFolder) -> Published:
    """Return what was last published in `out`; an empty one if nothing was.

    Raises Damaged for a file that cannot be read.
    """
    path = out.published
    if not is_there(path):
        return Published()
    data = read_json(path, _is_published, "the record of what was last published")
    del data["version"]
    return Published(**data)


def put_back(out: OutFolder) -> None:
    """Put manual grades back into a gradebook that was written anew, and lost them."""
    record = published(out)
    waiting = from_json(record.waiting)
    if not waiting:
        return
    homeless = restore(out, waiting)
    if homeless != waiting:
        # What is in the gradebook now waits no more: from here on a grader may take it back.
        _write(out, replace(record, manual=to_json(manual_in(out)), waiting=to_json(homeless)))


def await_gradebook(out: OutFolder) -> None:
    """Have manual grades wait if the gradebook lost their submissions, as a new one has."""
    record = published(out)
    there = submissions_in(out) if record.manual else set()
    gone = {key: one for key, one in from_json(record.manual).items() if key not in there}
    if gone:
        have_wait(out, {**from_json(record.waiting), **gone})


def have_wait(out: OutFolder, manual: Mapping[SubmissionKey, Manual]) -> None:
    """Have these manual grades wait until the gradebook has a place for them."""
    record = published(out)
    kept = {key: one for key, one in from_json(record.manual).items() if key not in manual}
    _write(out, replace(record, manual=to_json(kept), waiting=to_json(manual)))


def note_published(out: OutFolder) -> None:
    """Write down what `out` holds now, after all of it was published."""
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
