"""`autograder gradescope`: makes a lab's autograder for Gradescope."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from autograder.base.course import Course
from autograder.cli.common import Lab
from autograder.cli.report import Report

__all__ = ["gradescope"]

_SECRET = (
    "The zip contains this lab's answers and a secret derived from the course secret: upload it "
    "to Gradescope, and don't share it with anyone."
)


def gradescope(
    course: Course,
    lab: Lab,
    zip_file: Annotated[Path, typer.Option("--out", metavar="ZIP", help="File for the zip.")],
) -> Report:
    """Make the zip that grades a lab on Gradescope. Keep it secret."""
    from autograder.platforms.gradescope_zip import make_zip, points_of
    from autograder.publish.grades_csv import points

    release = make_zip(course, lab, course.secret(), zip_file)
    of = points_of(course, lab)
    lines = [
        f"{zip_file}  ({zip_file.stat().st_size / 2**20:.1f} MiB, {release})",
        f"Autograder points on Gradescope: {points(of.graded)}",
    ]
    if of.manual:
        lines.append(f"Points for manual grading on Gradescope: {points(of.manual)}")
    if of.gpu:
        lines.append(f"Points left out because they need a GPU: {points(of.gpu)}")
    if of.isolation:
        lines.append(f"Points left out because they need Linux namespaces: {points(of.isolation)}")
    return Report(
        text="\n".join(lines),
        data={"release": release, "points": asdict(of)},
        remarks=[_SECRET],
        paths={"zip": zip_file},
    )
