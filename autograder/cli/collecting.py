"""`autograder collect`: takes in a learning platform's download."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autograder.base.course import Course
from autograder.base.plural import plural
from autograder.cli.command import Output
from autograder.cli.common import Lab, OutFolder, out_option
from autograder.cli.report import Report, found

if TYPE_CHECKING:
    from autograder.platforms.collect import Collected

__all__ = ["collect"]

_SHOWN = 5  # lines of each kind without --verbose


def collect(
    course: Course,
    output: Output,
    lab: Lab,
    download: Annotated[
        Path,
        typer.Argument(metavar="DOWNLOAD", help="The downloaded zip, or its unpacked folder."),
    ],
    submitted: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder for submissions, as DIR/<student>/<lab>/<lab>.ipynb."
        ),
    ],
    out: Annotated[
        OutFolder,
        out_option("The results folder; collect reads its roster and adds receipts."),
    ],
) -> Report:
    """Take in a download from Canvas, Moodle or Gradescope."""
    from autograder.grading.registry import find_lab
    from autograder.platforms import collect as collecting
    from autograder.platforms.downloads import open_download
    from autograder.rules.semester import read_semester

    find_lab(lab, course)  # raises ValueError that lists all labs
    submitted = submitted.resolve()
    semester = read_semester(out, course, receipts_may_come=True)
    roster = semester.roster
    with open_download(download) as opened:
        done = collecting.collect(opened, download.name, lab, submitted, roster)
    aside = submitted.with_name(collecting.ASIDE.format(submitted.name))
    paths = {"submitted": submitted, "set_aside": aside}
    remarks = [] if roster else [_NO_ROSTER.format(out)]
    if done.received:
        paths["receipts"] = out.receipts
        collecting.write_receipts(paths["receipts"], lab, done.received)
        remarks += _unread_receipts(out)
    elif semester.late.percent_per_day and lab not in {r.lab for r in semester.receipts}:
        remarks.append(_NO_TIMES.format(opened.platform, out.receipts))
    strangers = {path: why for path, why in done.aside.items() if roster and path in done.unknown}
    most = None if output.verbose else _SHOWN
    text = [
        f"{lab}: {plural(len(done.placed) + len(done.unchanged), 'submission')} from "
        f"{opened.platform} ({len(done.placed)} new or changed, {len(done.unchanged)} unchanged)",
        *_details(done, aside, strangers, most),
    ]
    left = {**done.unread, **strangers}
    problems = [f"{path} was not collected: {why}." for path, why in left.items()]
    return found(problems, text="\n".join(text), data=_data(done), remarks=remarks, paths=paths)


_NO_ROSTER = (
    "Without a roster, students have the platform's ids. Name a roster in {}/semester.toml to use "
    "your own ids and to find senders who aren't on it."
)

_NO_TIMES = (
    "A download from {} doesn't contain submission times. Lateness costs nothing until {} has the "
    "times, in the columns student, lab, received."
)


def _unread_receipts(out: OutFolder) -> list[str]:
    """Say what to do if semester.toml doesn't name the receipts that were written."""
    path, receipts = out.semester, out.receipts.name
    named = tomllib.loads(path.read_text("utf-8-sig")).get("receipts") if path.is_file() else None
    if named == receipts:
        return []
    return [f'To count lateness from these times, write `receipts = "{receipts}"` in {path}.']


def _details(
    done: Collected, aside: Path, strangers: Mapping[str, str], most: int | None
) -> list[str]:
    """Lines on every submission that wasn't simply placed, at most `most` of each kind."""
    others = {path: why for path, why in done.aside.items() if path not in strangers}
    return [
        *_listed("Earlier notebooks moved aside", dict.fromkeys(done.replaced, ""), most),
        *_listed("Late according to the platform", dict.fromkeys(done.late, ""), most),
        *_listed("Taken in although the name isn't the lab's", done.renamed, most),
        *_listed(f"Set aside in {aside}", others, most),
        *_counted(f"Set aside in {aside}, and named on standard error", strangers),
    ]


def _listed(title: str, about: Mapping[str, str], most: int | None) -> list[str]:
    """A heading and one line for each entry, at most `most` lines."""
    if not about:
        return []
    lines = [f"  {name}: {told}" if told else f"  {name}" for name, told in about.items()]
    more = len(lines[most:]) if most else 0
    last = [f"  ... and {more} more; --verbose shows all"] if more else []
    return [f"{title} ({len(about)}):", *lines[:most], *last]


def _counted(title: str, about: Mapping[str, str]) -> list[str]:
    return [f"{title}: {len(about)}"] if about else []


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
