"""The command `autograder`: reads the arguments and runs one command."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from autograder.base.damage import Damaged
from autograder.base.terminal import say
from autograder.cli import building, formgrading, grading, platforms, reviewing, trying
from autograder.cli.report import STATUSES, STOPPED, USAGE, Report, show
from autograder.notebooks.questions import COURSE

__all__ = ["main"]

_OUT_OF_PLACE = (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
_COMMANDS = (
    building.add_build,
    grading.add_grade,
    grading.add_regrade,
    reviewing.add_rejudge,
    reviewing.add_explain,
    formgrading.add_formgrade,
    reviewing.add_export,
    reviewing.add_audit,
    reviewing.add_repair,
    trying.add_bank,
    trying.add_mutate,
    trying.add_sample,
    trying.add_demo,
    building.add_release,
    platforms.add_gradescope,
    trying.add_doctor,
)


class _Unreadable(Exception):
    """A command line that cannot be read: the command it is for, and what argparse says."""


class _Parser(argparse.ArgumentParser):
    """A parser that leaves it to `main` to say what is wrong, so that a program can read it too."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise _Unreadable(self.prog.partition(" ")[2], f"{self.prog}: error: {message}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, print its report, and return its exit status, one of `STATUSES`."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        options = parser().parse_args(given)
    except _Unreadable as error:
        command, said = error.args
        return show(Report(USAGE, problems=(said,)), command, as_json="--json" in given)
    if sys.platform == "linux":
        _prepare()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # many graders run at once
    # What is printed on the way is no part of the object that a program reads.
    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        report = _run(options)
    return show(report, options.command, as_json=options.json)


def _prepare() -> None:
    """Get what this process's children inherit ready, before it starts any."""
    from autograder.sandbox.host import cgroup, temporary, ulimits

    ulimits.raise_limits()
    temporary.shorten()
    cgroup.claim()


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; `run` is what a command does with its options."""
    whole: argparse.ArgumentParser = _Parser(
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
        if not options.course.is_dir():
            raise NotADirectoryError(
                f"--course {options.course} is no folder; expected one with solutions/ and labs/"
            )
        report: Report = options.run(options)
    except (ValueError, OSError, RuntimeError) as error:
        said = f"{error}{_remedy(options, error)}"
        return Report(USAGE, problems=(f"autograder {options.command}: {said}",))
    except Exception as error:
        from sqlalchemy.exc import OperationalError  # that takes too long where all goes well

        said = "this is a fault of the grader; what is written stays, and can be gone on from"
        if isinstance(error, OperationalError):
            said = f"the gradebook cannot be read or written: {error.orig}"
        else:
            say(traceback.format_exc(), to=sys.stderr)
        return Report(USAGE, problems=(f"autograder {options.command}: {said}",))
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not cut off what is said
        return Report(STOPPED, problems=("\nStopped. The same command goes on from here.",))
    return report


def _remedy(options: argparse.Namespace, error: Exception) -> str:
    """What mends a damaged file of a results folder, or one with something else in its place."""
    out, path = getattr(options, "out", None), None
    if isinstance(error, Damaged):
        path = error.path
    elif isinstance(error, _OUT_OF_PLACE) and isinstance(error.filename, str | os.PathLike):
        path = Path(error.filename)
    if out is None or path is None or out.resolve() not in path.absolute().parents:
        return ""
    course = [] if options.course == COURSE else ["--course", str(options.course)]
    command = shlex.join(["autograder", *course, "repair", str(out)])
    return f". `{command}` moves it away and rebuilds what the journal has"
