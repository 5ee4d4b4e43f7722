"""`autograder build` and `release`: from a lab's source to the students' zips."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from autograder.base.course import Course
from autograder.base.terminal import say
from autograder.cli.common import Labs
from autograder.cli.report import Report, found

__all__ = ["build", "release"]


def build(
    course: Course,
    labs: Labs = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; list stale notebooks.")
    ] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Write nothing; show the length of each lab.")
    ] = False,
    pull: Annotated[
        bool,
        typer.Option("--pull", help="First copy edits of the built notebooks into their sources."),
    ] = False,
) -> Report:
    """Build the notebooks in solutions/ and labs/ from their sources."""
    from autograder.authoring import build as building

    if check + stats + pull > 1:
        raise ValueError("--check, --stats and --pull can't be combined; give only one")
    if check:
        stale = building.check(course, labs)
        return found(stale, text="" if stale else "All built notebooks match their sources.")
    if stats:
        return _lengths(course, labs)
    if pull:
        from autograder.authoring.pull import pull as pull_edits

        for source in building.find_sources(course, labs):
            changes = pull_edits(course, source.stem) or ["no edits"]
            say("\n  ".join([f"{source.stem}:", *changes]))
    built = building.build(course, labs)
    text = "\n".join(f"built {path}" for path in built)
    return Report(text=text, data={"built": [str(path) for path in built]})


def _lengths(course: Course, labs: Labs) -> Report:
    from autograder.authoring.build import find_sources, read_source
    from autograder.authoring.length import length_of, length_table

    lengths = {
        source.stem: length_of(read_source(source.read_text(encoding="utf-8"), source.stem))
        for source in find_sources(course, labs)
    }
    data = {lab: asdict(length) for lab, length in lengths.items()}
    return Report(text=length_table(lengths), data={"lengths": data})


def release(
    course: Course,
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the zips.")],
    labs: Labs = None,
) -> Report:
    """Make the students' zips."""
    from autograder.authoring.release import make_release

    zips = make_release(course, labs, to)
    lines = [
        f"{path}  ({path.stat().st_size / 2**20:.1f} MiB, "
        f"{versions[0] if len(versions) == 1 else f'{len(versions)} labs'})"
        for path, versions in zips.items()
    ]
    releases = {str(path): versions for path, versions in zips.items()}
    return Report(text="\n".join(lines), data={"zips": releases})
