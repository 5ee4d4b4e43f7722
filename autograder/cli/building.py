"""`autograder build` and `release`: from a lab's source to what students get."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.base.terminal import say
from autograder.cli.report import Report, found

if TYPE_CHECKING:
    from autograder.cli.common import Commands

__all__ = ["add_build", "add_release"]


def add_build(commands: Commands) -> None:
    """Add `build`."""
    command = commands.add_parser("build", help="build solutions/ and labs/ from the sources")
    command.add_argument("labs", nargs="*", metavar="LAB", help="default: all labs")
    how = command.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true", help="write nothing; say what is stale")
    how.add_argument(
        "--stats", action="store_true", help="write nothing; show how long each lab is"
    )
    how.add_argument(
        "--pull",
        action="store_true",
        help="first carry what was edited in the built notebooks into their sources",
    )
    command.set_defaults(run=_build)


def _build(options: argparse.Namespace) -> Report:
    from autograder.authoring.build import build, check, find_sources

    labs = options.labs or None
    if options.check:
        stale = check(options.course, labs)
        return found(
            stale, text="" if stale else "All built notebooks are what their sources build."
        )
    if options.stats:
        return _lengths(options)
    if options.pull:
        from autograder.authoring.pull import pull

        for source in find_sources(options.course, labs):
            changes = pull(options.course, source.stem) or ["no edits to pull"]
            say("\n  ".join([f"{source.stem}:", *changes]))
    built = build(options.course, labs)
    text = "\n".join(f"built {path}" for path in built)
    return Report(text=text, data={"built": [str(path) for path in built]})


def _lengths(options: argparse.Namespace) -> Report:
    from autograder.authoring.build import find_sources, read_source
    from autograder.authoring.length import length_of, length_table

    lengths = {
        source.stem: length_of(read_source(source.read_text(encoding="utf-8"), source.stem))
        for source in find_sources(options.course, options.labs or None)
    }
    data = {lab: asdict(length) for lab, length in lengths.items()}
    return Report(text=length_table(lengths), data={"lengths": data})


def add_release(commands: Commands) -> None:
    """Add `release`."""
    command = commands.add_parser("release", help="make the zips that students get")
    command.add_argument("labs", nargs="*", metavar="LAB", help="default: all labs")
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    command.set_defaults(run=_release)


def _release(options: argparse.Namespace) -> Report:
    from autograder.authoring.release import make_release

    zips = make_release(options.course, options.labs or None, options.out)
    lines = [
        f"{path}  ({path.stat().st_size / 2**20:.1f} MiB, {', '.join(versions)})"
        for path, versions in zips.items()
    ]
    releases = {str(path): versions for path, versions in zips.items()}
    return Report(text="\n".join(lines), data={"zips": releases})
