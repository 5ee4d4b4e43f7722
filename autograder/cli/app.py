"""The program `autograder`: all commands in groups, and the course they work on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from autograder.base.course import COURSE, Course
from autograder.cli.building import build, release
from autograder.cli.collecting import collect
from autograder.cli.command import add_command
from autograder.cli.formgrading import AS_GIVEN, formgrade
from autograder.cli.grading import grade, regrade
from autograder.cli.platforms import gradescope
from autograder.cli.report import STATUSES, USAGE, Report, show
from autograder.cli.reviewing import audit, explain, export, rejudge, repair
from autograder.cli.trying import MeasureCommand, bank, demo, doctor, mutate, sample
from peakmem.show.cli.program import Unreadable, program, require_command, run, version_option

__all__ = ["main"]

_COMMANDS = {
    "Grade a class": (collect, grade, audit, formgrade, export),
    "Review grades": (explain, rejudge, regrade, repair),
    "Build and release labs": (build, release, gradescope),
    "Check the grader": (doctor, demo, sample, bank, mutate),
}
_SETTINGS: dict[Callable[..., Report], dict[str, Any]] = {
    doctor: {"cls": MeasureCommand},
    formgrade: {"context_settings": AS_GIVEN},
}

_app = program(
    "Build labs, grade submissions in a sandbox, and publish grades and feedback.", epilog=STATUSES
)
for _panel, _functions in _COMMANDS.items():
    for _function in _functions:
        add_command(_app, _panel, _function, **_SETTINGS.get(_function, {}))


@_app.callback()
def _any_command(
    context: typer.Context,
    course: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The course's folder, with solutions/ and labs/; by default, this course.",
        ),
    ] = None,
    version: Annotated[bool, version_option("autograder")] = False,
) -> None:
    context.obj = COURSE if course is None else Course(course)
    require_command(context, "grade")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, print its report, and return its exit status, one of `STATUSES`."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        return run(_app, "autograder", given)
    except Unreadable as error:
        report = Report(USAGE, problems=(error.sentence,))
        return show(report, error.command, as_json="--json" in given)
