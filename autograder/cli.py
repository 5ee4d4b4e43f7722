"""The command `autograder`: build the labs, grade a class, check that nobody was lost."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.commands import building, grading, platforms, reviewing, trying
from autograder.commands.report import STATUSES, STOPPED, USAGE, Report, show
from autograder.questions import COURSE

__all__ = ["main"]

_COMMANDS = (
    building.add_build,
    grading.add_grade,
    grading.add_regrade,
    reviewing.add_rejudge,
    reviewing.add_explain,
    reviewing.add_export,
    reviewing.add_audit,
    trying.add_bank,
    trying.add_sample,
    trying.add_demo,
    building.add_release,
    platforms.add_gradescope,
    trying.add_doctor,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, print its report, and return its exit status, one of `STATUSES`."""
    options = parser().parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # many graders run at once
    # What is printed on the way is no part of the object that a program reads.
    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        report = _run(options)
    return show(report, options.command, as_json=options.json)


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; `run` is what a command does with its options."""
    whole = argparse.ArgumentParser(
        prog="autograder",
        description=__doc__,
        epilog=STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument(
        "--course",
        type=Path,
        default=COURSE,
        metavar="DIR",
        help="the course's folder, with solutions/ and labs/ in it (default: this one)",
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in _COMMANDS:
        add(commands)
    for command in commands.choices.values():
        command.add_argument(
            "--json", action="store_true", help="print one JSON object instead of text"
        )
        command.epilog = STATUSES
        command.formatter_class = argparse.RawDescriptionHelpFormatter
    return whole


def _run(options: argparse.Namespace) -> Report:
    try:
        report: Report = options.run(options)
    except (ValueError, OSError, RuntimeError) as error:
        return Report(USAGE, problems=(f"autograder {options.command}: {error}",))
    except Exception as error:
        from sqlalchemy.exc import OperationalError  # that takes too long where all goes well

        if not isinstance(error, OperationalError):
            raise
        said = f"the gradebook cannot be read or written: {error.orig}"
        return Report(USAGE, problems=(f"autograder {options.command}: {said}",))
    except KeyboardInterrupt:
        return Report(STOPPED, problems=("\nStopped. The same command goes on from here.",))
    return report
