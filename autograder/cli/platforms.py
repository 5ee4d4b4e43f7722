"""`autograder gradescope`: makes what a learning platform grades with."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.cli.common import add_lab
from autograder.cli.report import Report

if TYPE_CHECKING:
    from autograder.cli.common import Commands

__all__ = ["add_gradescope"]

_SECRET = (
    "The zip holds this lab's answers and a secret that was made for this lab from the course's: "
    "upload it to Gradescope, and share it with nobody."
)


def add_gradescope(commands: Commands) -> None:
    """Add `gradescope`."""
    command = commands.add_parser(
        "gradescope", help="make the zip that grades a lab on Gradescope; keep it secret"
    )
    add_lab(command)
    command.add_argument("--out", type=Path, required=True, metavar="ZIP")
    command.set_defaults(run=_gradescope)


def _gradescope(options: argparse.Namespace) -> Report:
    from autograder.platforms.gradescope_zip import make_zip, points_of
    from autograder.publish.export import points

    release = make_zip(options.course, options.lab, options.course.secret(), options.out)
    of = points_of(options.course, options.lab)
    lines = [
        f"{options.out}  ({options.out.stat().st_size / 2**20:.1f} MiB, {release})",
        f"Autograder points on Gradescope: {points(of.graded)}",
    ]
    if of.by_person:
        lines.append(f"Points for manual grading there: {points(of.by_person)}")
    if of.gpu:
        lines.append(f"Left out, since they need a GPU: {points(of.gpu)}")
    return Report(
        text="\n".join(lines),
        data={"release": release, "points": asdict(of)},
        remarks=[_SECRET],
        paths={"zip": options.out},
    )
