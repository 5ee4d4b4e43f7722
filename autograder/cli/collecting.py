"""`autograder collect`: takes in what a learning platform's download holds."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.cli.common import add_lab, out_folder
from autograder.cli.report import Report, found

if TYPE_CHECKING:
    from autograder.cli.common import Commands
    from autograder.platforms.collect import Collected
    from autograder.store.out_folder import OutFolder

__all__ = ["add_collect"]

_SHOWN = 5  # lines of each kind; the log has all of them


def add_collect(commands: Commands) -> None:
    """Add `collect`."""
    command = commands.add_parser(
        "collect", help="take in a download from Canvas, Moodle or Gradescope"
    )
    add_lab(command)
    command.add_argument(
        "download", type=Path, metavar="DOWNLOAD", help="the zip as it came, or its unpacked folder"
    )
    command.add_argument(
        "--submitted",
        type=Path,
        required=True,
        metavar="DIR",
        help="where submissions go, as DIR/<student>/<lab>/<lab>.ipynb",
    )
    command.add_argument(
        "--out",
        type=out_folder,
        required=True,
        metavar="OUT",
        help="the results folder, whose semester.toml names the roster; receipts go there",
    )
    command.set_defaults(run=_collect)


def _collect(options: argparse.Namespace) -> Report:
    from autograder.grading.registry import find_lab
    from autograder.platforms.collect import ASIDE, collect, write_receipts
    from autograder.platforms.downloads import open_download
    from autograder.rules.semester import read_semester

    find_lab(options.lab, options.course)  # ValueError, with the names that there are
    submitted: Path = options.submitted.resolve()
    roster = read_semester(options.out, options.course).roster
    with open_download(options.download) as download:
        done = collect(download, options.download.name, options.lab, submitted, roster)
    aside = submitted.with_name(ASIDE.format(submitted.name))
    paths = {"submitted": submitted, "set_aside": aside}
    remarks = [] if roster else [_NO_ROSTER.format(options.out)]
    if done.received:
        paths["receipts"] = options.out.receipts
        write_receipts(paths["receipts"], options.lab, done.received)
        remarks += _unread_receipts(options.out)
    collected = len(done.placed) + len(done.unchanged)
    text = "\n".join(
        [
            f"{options.lab}: {collected} submissions from {download.platform} "
            f"({len(done.placed)} new or changed, {len(done.unchanged)} as before)",
            *_named("Earlier notebooks moved aside", done.replaced),
            *_named("Late, by the platform's word", done.late),
            *_listed("Taken though its name is not the lab's", done.renamed),
            *_listed(f"Set aside in {aside}", done.aside),
        ]
    )
    problems = [f"{path}: not taken in, since {why}." for path, why in done.unread.items()]
    problems += [
        f"{path}: not taken in, since {why}."
        for path, why in done.aside.items()
        if roster and path in done.unknown
    ]
    return found(problems, text=text, data=_data(done), remarks=remarks, paths=paths)


_NO_ROSTER = (
    "{}/semester.toml names no roster, so students have the ids that the platform knows them by. "
    "With `roster`, they get their own, and strangers are named."
)


def _unread_receipts(out: OutFolder) -> list[str]:
    """Say what to do if the semester's rules do not read the receipts that were written."""
    path, receipts = out.semester, out.receipts.name
    named = tomllib.loads(path.read_text("utf-8-sig")).get("receipts") if path.is_file() else None
    if named == receipts:
        return []
    return [f'To count lateness from these times, write `receipts = "{receipts}"` in {path}.']


def _named(title: str, students: Sequence[str]) -> list[str]:
    return _listed(title, dict.fromkeys(students, ""))


def _listed(title: str, about: Mapping[str, str]) -> list[str]:
    if not about:
        return []
    lines = [f"{title} ({len(about)}):"]
    lines += [f"  {name}: {told}" if told else f"  {name}" for name, told in about.items()]
    more = len(about) - _SHOWN
    return [*lines[: _SHOWN + 1], f"  ... and {more} more"] if more > 0 else lines


def _data(done: Collected) -> dict[str, object]:
    return {
        "placed": done.placed,
        "unchanged": done.unchanged,
        "replaced": done.replaced,
        "late": done.late,
        "renamed": done.renamed,
        "set_aside": done.aside,
        "unread": done.unread,
        "received": {student: time.isoformat() for student, time in done.received.items()},
    }
