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
from autograder.store.manual_backup import (
    Key,
    Manual,
    from_json,
    is_manual,
    manual_in,
    restore,
    submissions_in,
    to_json,
)
from autograder.store.small_files import COUNTED, SETTINGS, SHOWN, TAKEN, WAIVED, SmallFile

__all__ = [
    "PUBLISHED",
    "Published",
    "await_gradebook",
    "have_wait",
    "note_published",
    "published",
    "put_back",
]

PUBLISHED = "published.json"
_VERSION = 1


@dataclass(frozen=True)
class Published:
    """Copies of the small files, each as its JSON, and of the manual grades.

    `manual` are those in the gradebook, `waiting` those of submissions that have no automatic grade
    at the moment, so that the gradebook has no place for them. `settings` is whether there were
    rules of the instructor's.
    """

    taken: Sequence[Sequence[str]] = ()
    waived: Mapping[str, Any] = field(default_factory=dict)
    counted: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)
    manual: Mapping[str, Any] = field(default_factory=dict)
    waiting: Mapping[str, Any] = field(default_factory=dict)
    settings: bool = False

    def copy(self, small: SmallFile) -> Any:
        """The copy of one of the small files."""
        return getattr(self, small.path(Path()).stem)


def published(out: Path) -> Published:
    """Return what was last published in `out`; an empty one if nothing was.

    Raises Damaged for a file that cannot be read.
    """
    path = out / PUBLISHED
    if not is_there(path):
        return Published()
    data = read_json(path, _is_published, "the record of what was last published")
    del data["version"]
    return Published(**data)


def put_back(out: Path) -> None:
    """Put manual grades back into a gradebook that was written anew, and lost them."""
    record = published(out)
    waiting = from_json(record.waiting)
    if not waiting:
        return
    homeless = restore(out, waiting)
    if homeless != waiting:
        # What is in the gradebook now waits no more: from here on a grader may take it back.
        _write(out, replace(record, manual=to_json(manual_in(out)), waiting=to_json(homeless)))


def await_gradebook(out: Path) -> None:
    """Have manual grades wait if the gradebook lost their submissions, as a new one has."""
    record = published(out)
    there = submissions_in(out) if record.manual else set()
    gone = {key: one for key, one in from_json(record.manual).items() if key not in there}
    if gone:
        have_wait(out, {**from_json(record.waiting), **gone})


def have_wait(out: Path, manual: Mapping[Key, Manual]) -> None:
    """Have these manual grades wait until the gradebook has a place for them."""
    record = published(out)
    kept = {key: one for key, one in from_json(record.manual).items() if key not in manual}
    _write(out, replace(record, manual=to_json(kept), waiting=to_json(manual)))


def note_published(out: Path) -> None:
    """Write down what `out` holds now, after all of it was published."""
    now = Published(
        taken=TAKEN.read(out),
        waived=WAIVED.read(out),
        counted=COUNTED.read(out),
        shown=SHOWN.read(out),
        manual=to_json(manual_in(out)),
        waiting=published(out).waiting,
        settings=is_there(out / SETTINGS),
    )
    _write(out, now)


def _write(out: Path, record: Published) -> None:
    data = {"version": _VERSION, **asdict(record)}
    write_whole(out / PUBLISHED, json.dumps(data, sort_keys=True, indent=0).encode())


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
