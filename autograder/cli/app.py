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

from autograder.base.course import COURSE, Course
from autograder.base.damage import Damaged
from autograder.base.spelling import did_you_mean
from autograder.base.terminal import say
from autograder.cli import building, collecting, formgrading, grading, platforms, reviewing, trying
from autograder.cli.common import name_labs
from autograder.cli.report import STATUSES, STOPPED, USAGE, Report, show
from peakmem import __version__

__all__ = ["main"]

_OUT_OF_PLACE = (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
_COMMANDS = {
    "Grade a class": (
        collecting.add_collect,
        grading.add_grade,
        reviewing.add_audit,
        formgrading.add_formgrade,
        reviewing.add_export,
    ),
    "Look again at grades": (
        reviewing.add_explain,
        reviewing.add_rejudge,
        grading.add_regrade,
        reviewing.add_repair,
    ),
    "Make and hand out labs": (
        building.add_build,
        building.add_release,
        platforms.add_gradescope,
    ),
    "Try the grader": (
        trying.add_doctor,
        trying.add_demo,
        trying.add_sample,
        trying.add_bank,
        trying.add_mutate,
    ),
}


class _Unreadable(Exception):
    """A command line that cannot be read: the command it is for, and what argparse says."""


class _Parser(argparse.ArgumentParser):
    """A parser that leaves it to `main` to say what is wrong, so that a program can read it too."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise _Unreadable(self.prog.partition(" ")[2], f"{self.prog}: error: {message}")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            known = list(action.choices)
            near = did_you_mean(str(value), known)
            self.error(f"there is no command {value!r}; choose from {', '.join(known)}.{near}")
        super()._check_value(action, value)


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help in which each command has one line, below the heading of its group."""

    def _format_action(self, action: argparse.Action) -> str:
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        lines = iter(action._get_subactions())
        return "".join(
            f"  {group}:\n{''.join(_command_line(next(lines)) for _ in adders)}"
            for group, adders in _COMMANDS.items()
        )


def _command_line(command: argparse.Action) -> str:
    return f"    {command.dest:<12}{command.help}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, print its report, and return its exit status, one of `STATUSES`."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        options = _read(given)
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


def _read(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line; without a command, show which ones there are and raise."""
    whole = parser()
    options = whole.parse_args(given)
    if options.command is None:
        whole.print_help(sys.stderr)
        raise _Unreadable("", f"{whole.prog}: error: a COMMAND is required, such as `grade`")
    return options


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
        description="Builds labs, grades submissions in a sandbox, and hands out what came of it.",
        epilog=STATUSES,
        formatter_class=_Help,
    )
    whole.add_argument("--version", action="version", version=f"autograder {__version__}")
    whole.add_argument(
        "--course",
        type=lambda text: Course(Path(text)),
        default=COURSE,
        metavar="DIR",
        help="the course's folder, with solutions/ and labs/ in it (default: this one)",
    )
    commands = whole.add_subparsers(dest="command", title="commands", metavar="COMMAND")
    for adders in _COMMANDS.values():
        for add in adders:
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
        if not options.course.root.is_dir():
            raise NotADirectoryError(
                f"--course {options.course} is not a folder; expected one with solutions/ and labs/"
            )
        name_labs(options)
        report: Report = options.run(options)
    except (ValueError, OSError, RuntimeError) as error:
        said = f"{error}{_remedy(options, error)}"
        return Report(USAGE, problems=(f"autograder {options.command}: {said}",))
    except Exception as error:
        from sqlalchemy.exc import OperationalError  # that takes too long where all goes well

        said = "this is a bug in the grader; what is written is kept. Run the same command again"
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
    from autograder.store.out_folder import OutFolder

    out, path = getattr(options, "out", None), None
    if isinstance(error, Damaged):
        path = error.path
    elif isinstance(error, _OUT_OF_PLACE) and isinstance(error.filename, str | os.PathLike):
        path = Path(error.filename)
    if not isinstance(out, OutFolder) or path is None:
        return ""
    if out.resolve().path not in path.absolute().parents:
        return ""
    command = shlex.join(["autograder", *options.course.command_options, "repair", str(out)])
    return f". `{command}` moves it away and rebuilds what the journal has"
